"""The inventory: every device of the node, from what was read of each GPU, and the known GPUs that cannot be reached.

No I/O.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import pynvml

from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.link import Link
from exporter.node.devices.entities.vgpu import Vgpu
from exporter.node.devices.readings.known_gpus import missing_gpus
from exporter.node.nvml.entities.links import LinkValues
from exporter.node.nvml.entities.vgpus import VgpuReadings
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.nvml.native.values import LOST, NO_PERMISSION, GpuLostError, NvmlValue, rejected
from exporter.node.nvml.reading.gpu_reader import GpuReadings

_LASTING = frozenset({NvmlReason.TEXT_UNREADABLE, NvmlReason.GPU_HUNG})
"""Problems that a new session with the library does not end."""


@dataclass(slots=True)
class NvmlInventory:
    """The devices of one collection."""

    devices: list[Device] = field(default_factory=list)
    values: list[dict[int, NvmlValue | None] | None] = field(default_factory=list)
    """By position in `devices`; None of one that could not be read."""
    down: set[str] = field(default_factory=set)
    """UUIDs of known GPUs that cannot be reached."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """(reason, message)"""
    lost: bool = False
    """Whether a GPU is down that a new session with the library could reach."""

    @property
    def complete(self) -> bool:
        """Whether a new session with the library could not find more."""
        return bool(self.devices) and not self.lost and all(reason in _LASTING for reason, _ in self.problems)


class InventoryMemory:
    """Remembers every GPU and its MIG devices, so that one that cannot be reached keeps its labels."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Device, ...]] = {}
        self._uuids: dict[int, str] = {}

    def inventory(self, readings: Iterable[GpuReadings], hung: Collection[int]) -> NvmlInventory:
        """Return the inventory of one collection; `hung` are the indexes of the GPUs that have not answered.

        Raises SourceError when a GPU could not be opened because the library as a whole fails.
        """
        found = NvmlInventory()
        rows: list[tuple[Device, dict[int, NvmlValue | None] | None]] = []
        for each in readings:
            rows += self._devices(each, found)
        missing = self._missing([device for device, _ in rows])
        found.problems += [(NvmlReason.GPU_HUNG, self._hung_message(index)) for index in sorted(hung)]
        found.lost = bool(found.down) or not missing <= {self._uuids.get(index) for index in hung}
        found.down |= missing
        rows += [(device, None) for uuid in missing for device in self._last[uuid]]
        rows.sort(key=lambda row: (row[0].index, row[0].gi, row[0].ci))
        found.devices, found.values = [device for device, _ in rows], [values for _, values in rows]
        return found

    def _devices(
        self, readings: GpuReadings, found: NvmlInventory
    ) -> list[tuple[Device, dict[int, NvmlValue | None] | None]]:
        gpu = readings.found
        if gpu is None:
            self._report_unreadable(readings.index, readings.failure, found)
            return []
        self._uuids[readings.index] = gpu.uuid
        self._last[gpu.uuid] = tuple(each.device for each in gpu.devices)
        found.problems += gpu.problems
        # Of a GPU that was lost during this collection nothing is exposed, not even what was read before.
        if readings.down:
            found.down.add(gpu.uuid)
            return [(device, None) for device in self._last[gpu.uuid]]
        return list(zip(self._last[gpu.uuid], readings.values, strict=True))

    def _report_unreadable(self, index: int, failure: Exception | None, found: NvmlInventory) -> None:
        match failure:
            case GpuLostError():
                code = next(iter(LOST))
            case pynvml.NVMLError():
                code = failure.value
            case _:
                message = f"the GPU with NVML index {index} cannot be read: {failure!r}"
                found.problems.append((NvmlReason.GPU_FAILED, message))
                return
        if code not in LOST:
            rejected(code)  # raises SourceError when no GPU can be read
            reason = NvmlReason.NO_PERMISSION if code == NO_PERMISSION else NvmlReason.GPU_UNREADABLE
            found.problems.append((reason, f"the GPU with NVML index {index} cannot be opened: return code {code}"))
        elif index not in self._uuids:
            found.problems.append((NvmlReason.GPU_LOST, f"the GPU with NVML index {index} is lost and was never seen"))

    def _missing(self, listed: list[Device]) -> set[str]:
        """The UUIDs of the known GPUs that are not listed; those that another one has replaced are forgotten."""
        missing = missing_gpus({uuid: devices[0] for uuid, devices in self._last.items()}, listed)
        known = missing.keys() | {device.uuid for device in listed}
        self._last = {uuid: devices for uuid, devices in self._last.items() if uuid in known}
        return set(missing)

    def _hung_message(self, index: int) -> str:
        uuid = self._uuids.get(index)
        name = f"NVML index {index}" if uuid is None else f"NVML index {index} ({uuid})"
        return f"a call for the GPU with {name} has not returned in time; it is read again once the call returns"


def links_of(readings: Iterable[GpuReadings], inventory: NvmlInventory) -> dict[Link, LinkValues]:
    """Return the links of the GPUs that could be read, in the order of the inventory, with their values."""
    return {
        Link(position, number): values
        for position, each in _readable(readings, inventory)
        for number, values in each.links.items()
    }


def vgpus_of(readings: Iterable[GpuReadings], inventory: NvmlInventory) -> list[tuple[Vgpu, VgpuReadings]]:
    """Return the vGPUs of the GPUs that could be read, in the order of the inventory, and what was read of them."""
    return [
        (Vgpu(position, vgpu.number, vgpu.uuid), vgpu)
        for position, each in _readable(readings, inventory)
        for vgpu in each.vgpus
    ]


def _readable(readings: Iterable[GpuReadings], inventory: NvmlInventory) -> Iterator[tuple[int, GpuReadings]]:
    """Yield the GPUs that could be read, by their positions in the inventory."""
    by_uuid = {each.found.uuid: each for each in readings if each.found is not None and not each.down}
    for position, device in enumerate(inventory.devices):
        if device.gi < 0 and device.uuid in by_uuid:
            yield position, by_uuid[device.uuid]
