"""Adds up what the processes of each container use of each device. No I/O, no state.

In: the processes of the GPUs, where each runs, the containers of the node, and which container was given which device.
Out: one `PodUse` per device and container. What cannot be known of a device is absent; others are not affected.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.node.attribution.matching.attribute import Attribution, PodContainer
from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings, ProcessReason
from exporter.node.processes.allocated_pods import AllocatedPods
from exporter.node.processes.cgroup import ContainerPlace
from exporter.node.processes.known_containers import KnownContainers
from exporter.node.processes.proc_folder import NoContainer, Place

_DIGITS = 6
"""Decimals of a share: the driver gives whole per cents."""


class PodUse(NamedTuple):
    """What one container uses of one device."""

    device: int
    """Its position in the inventory."""
    container: PodContainer
    """Without a name where only the pod is known."""
    memory: int | None
    """Bytes of framebuffer; None where it is not known."""
    sm: float | None
    """Share of the time in which a multiprocessor ran a kernel of it, at most 1; None where it is not known."""
    unallocated: bool = False
    """Whether the device is certainly not allocated to the pod."""


@dataclass(frozen=True, slots=True)
class DeviceUses:
    """What is used of the devices."""

    pods: tuple[PodUse, ...] = ()
    unattributed: Mapping[int, int] = field(default_factory=dict)
    """By position of a device, bytes of the processes that run in no pod, where there are any."""
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, message)."""


@dataclass(frozen=True, slots=True)
class ProcessPlaces:
    """What is known of where processes run."""

    places: Mapping[int, Place]
    """By PID."""
    pods: KnownContainers
    complete: bool = True
    """Whether every process of the node can be listed: only then a container without any uses nothing."""


@dataclass(slots=True)
class _Sums:
    """What the processes of one device use."""

    pods: dict[PodContainer, list[GpuProcess]] = field(default_factory=dict)
    host: list[GpuProcess] = field(default_factory=list)
    unreadable: bool = False
    unknown_pods: int = 0
    mps: bool = False


@dataclass(frozen=True, slots=True)
class _Joined:
    """What the processes of one collection are joined with."""

    places: ProcessPlaces
    attribution: Attribution
    allocated: AllocatedPods
    uids: Mapping[tuple[str, str], str]
    """By namespace and name, the uid of a pod; empty where two have one name, because the first of them has ended."""


def device_uses(readings: ProcessReadings, places: ProcessPlaces, attribution: Attribution) -> DeviceUses:
    """Add up the processes of every GPU that can be read."""
    joined = _Joined(places, attribution, AllocatedPods.of(attribution), _uids(places.pods))
    positions: dict[str, dict[tuple[int, int], int]] = {}
    for position, device in enumerate(attribution.inventory):
        positions.setdefault(device.uuid, {})[device.gi, device.ci] = position
    uses: list[PodUse] = []
    unattributed: dict[int, int] = {}
    problems = []
    for gpu in readings.gpus:
        if gpu.problem is not None:
            problems.append(gpu.problem)
            continue
        sums = _sums(gpu, positions.get(gpu.uuid, {}), places)
        problems += _problems(gpu.uuid, sums)
        for position, own in sorted(sums.items()):
            uses += _of_device(position, own, gpu, joined)
            if (host := _memory(own.host)) and not own.unreadable:
                unattributed[position] = host
    return DeviceUses(tuple(uses), unattributed, tuple(problems))


def _uids(pods: KnownContainers) -> dict[tuple[str, str], str]:
    uids: dict[tuple[str, str], str] = {}
    for each in pods.by_uid.values():
        uids[each[:2]] = each.pod_uid if uids.get(each[:2], each.pod_uid) == each.pod_uid else ""
    return uids


def _sums(gpu: GpuProcesses, positions: Mapping[tuple[int, int], int], places: ProcessPlaces) -> dict[int, _Sums]:
    """Return the processes by device, for each device of the GPU; `positions` are by GPU and compute instance id."""
    sums = {position: _Sums() for position in positions.values()}
    for process in gpu.processes:
        position = positions.get((process.gi, process.ci), positions.get((process.gi, -1)))
        if position is not None:  # else the MIG device was made or destroyed in this moment
            _add(sums[position], process, places)
    return sums


def _add(sums: _Sums, process: GpuProcess, places: ProcessPlaces) -> None:
    place = places.places.get(process.pid, NoContainer.UNREADABLE)
    if place is NoContainer.ENDED:
        return
    sums.mps |= process.mps
    if isinstance(place, ContainerPlace):
        container = places.pods.find(place)
        if container is None:
            sums.unknown_pods += 1
        else:
            sums.pods.setdefault(container, []).append(process)
    elif place is NoContainer.HOST:
        sums.host.append(process)
    else:
        sums.unreadable = True


def _problems(uuid: str, sums: Mapping[int, _Sums]) -> Iterator[tuple[str, str]]:
    if any(each.unreadable for each in sums.values()):
        yield ProcessReason.PROCESS_UNREADABLE, f"the control group of a process on {uuid} cannot be read"
    if unknown := sum(each.unknown_pods for each in sums.values()):
        yield ProcessReason.POD_UNKNOWN, f"{unknown} processes on {uuid} belong to pods that are not known"


def _of_device(position: int, sums: _Sums, gpu: GpuProcesses, joined: _Joined) -> Iterator[PodUse]:
    """Yield the uses of one device; none where a process of it cannot be read, which could be of any pod."""
    if sums.unreadable:
        return
    shared_by_mps = sums.mps or joined.attribution.states[position].sharing == "mps"
    # Under MPS all clients run in one context, whose utilization the driver gives to any of them.
    sm_known = gpu.sm_known and not shared_by_mps
    allocated, init = joined.allocated.pods(position), joined.places.pods.init
    for container, processes in sorted(sums.pods.items()):
        unallocated = allocated is not None and container[:2] not in allocated and container not in init
        sm = round(min(sum(each.sm or 0.0 for each in processes), 1.0), _DIGITS) if sm_known else None
        yield PodUse(position, container, _memory(processes), sm, unallocated)
    if joined.places.complete and not shared_by_mps:
        zero = 0.0 if sm_known else None
        for container in _idle(position, sums, joined):
            yield PodUse(position, container, 0, zero)


def _memory(processes: list[GpuProcess]) -> int | None:
    """Return the sum; None where that of one is not known."""
    known = [each.memory for each in processes if each.memory is not None]
    return sum(known) if len(known) == len(processes) else None


def _idle(position: int, sums: _Sums, joined: _Joined) -> Iterator[PodContainer]:
    """Yield the containers that were given the device and have no process on it.

    Not those of a pod with a process of which the container is not known.
    """
    with_process = {container[:3] for container in sums.pods}
    for each in joined.allocated.containers.get(position, ()):
        known = each[:3] in joined.places.pods.containers
        if known and each[:3] not in with_process and (*each[:2], "") not in with_process:
            yield each._replace(pod_uid=each.pod_uid or joined.uids.get(each[:2], ""))
