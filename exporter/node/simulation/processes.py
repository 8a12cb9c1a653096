"""The processes of a scenario: what it says of each, and which run on the GPUs at one time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings
from exporter.node.simulation.script import Script, value_at

ProcessKind = Literal["compute", "graphics", "mps"]
"""The list of NVML that has the process; that of `mps` has the clients of MPS."""
MAX_PID = 2**22
"""The largest possible (PID_MAX_LIMIT, proc(5))."""


class ProcessSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """A process on a device, from one time to another.

    Namespace, pod and container are where it runs; they are empty for a process of the host.
    """

    pid: int
    device: str
    """An address: `GPU-…`, `GPU-…/gi` or `GPU-…/gi/ci`."""
    memory_mib: int | None = None
    """None where NVML does not know it."""
    sm: Script = 0
    """Utilization of the multiprocessors, in per cent."""
    kinds: tuple[ProcessKind, ...] = ("compute",)
    namespace: str = ""
    pod: str = ""
    container: str = ""
    from_: float = 0.0
    until: float | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """UUID of the GPU, GPU instance id and compute instance id: -1 on a GPU, 0 where the address has no `ci`.

        Raises ValueError when the address has anything but these numbers.
        """
        uuid, gi, ci = (*self.device.split("/"), "", "")[:3]
        return uuid, int(gi or -1), int(ci or (0 if gi else -1))


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process at one time."""

    spec: ProcessSpec
    gpu: str
    gi: int
    ci: int
    sm: float
    """Per cent."""


def processes_at(specs: Iterable[ProcessSpec], t: float) -> Iterator[ProcessState]:
    """Yield the processes that run t seconds after the scenario began."""
    for spec in specs:
        if spec.from_ <= t and (spec.until is None or t < spec.until):
            share = value_at(spec.sm, t).value
            yield ProcessState(spec, *spec.place, sm=share if isinstance(share, int | float) else 0)


def process_readings(states: Iterable[ProcessState], gpus: Mapping[str, bool]) -> ProcessReadings:
    """Return what NVML would list on these GPUs; `gpus` says of each, by UUID, whether it is MIG-enabled.

    As on a real GPU, no utilization of a process is measured under MIG.
    """
    listed: dict[str, list[GpuProcess]] = {uuid: [] for uuid in gpus}
    for each in states:
        if each.gpu in listed:
            spec, sm = each.spec, None if gpus[each.gpu] else each.sm / 100
            memory = None if spec.memory_mib is None else spec.memory_mib << 20
            listed[each.gpu].append(GpuProcess(spec.pid, each.gi, each.ci, memory, sm, "mps" in spec.kinds))
    ordered = {uuid: sorted(found, key=lambda each: (each.pid, each.gi, each.ci)) for uuid, found in listed.items()}
    return ProcessReadings(
        tuple(GpuProcesses(uuid, tuple(found), sm_known=not gpus[uuid]) for uuid, found in ordered.items())
    )


def process_errors(specs: Iterable[ProcessSpec], uuids: set[str]) -> Iterator[str]:
    """Yield the errors that the types of the model do not exclude, as messages with a place."""
    for position, spec in enumerate(specs):
        place = f"$.processes[{position}]"
        if not 0 < spec.pid <= MAX_PID:
            yield f"pid {spec.pid} is not one from 1 to {MAX_PID} - at `{place}.pid`"
        try:
            uuid, _, _ = spec.place
        except ValueError:
            yield f"{spec.device!r} is not the address of a device - at `{place}.device`"
            continue
        if uuid not in uuids:
            yield f"no device has the uuid {uuid!r} - at `{place}.device`"
