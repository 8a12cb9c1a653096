"""Remembers the GPUs of the node for the life of the exporter, so that one that is no longer listed is missed.

A source knows only what its library has listed: a GPU that is lost while the reader process or the source changes would
otherwise be forgotten. No I/O.
"""

from collections.abc import Iterable, Mapping

import msgspec

from exporter.node.devices.device import Device
from exporter.node.devices.readings import Readings


def missing_gpus(known: Mapping[str, Device], listed: Iterable[Device]) -> dict[str, Device]:
    """Return, by UUID, the known GPUs that are not listed, except where another one is at the same PCI address.

    That one has replaced it. Fewer GPUs than before are never a reason to forget one.
    """
    devices = tuple(listed)
    uuids = {device.uuid for device in devices}
    addresses = {device.pci_bus_id for device in devices if device.pci_bus_id}
    return {uuid: gpu for uuid, gpu in known.items() if uuid not in uuids and gpu.pci_bus_id not in addresses}


class KnownGpus:
    """Every GPU that was read once and has not been replaced by another one."""

    def __init__(self) -> None:
        self._gpus: dict[str, Device] = {}
        self._inventory: tuple[Device, ...] = ()
        self._missing: tuple[Device, ...] = ()

    def __len__(self) -> int:
        return len(self._gpus)

    def completed(self, readings: Readings) -> Readings:
        """Return the readings with the known GPUs that their source does not list, as devices that are down."""
        if readings.inventory != self._inventory:
            self._update(readings.inventory)
        if not self._missing:
            return readings
        return msgspec.structs.replace(
            readings,
            inventory=(*readings.inventory, *self._missing),
            down=(*readings.down, *(gpu.uuid for gpu in self._missing)),
        )

    def _update(self, inventory: tuple[Device, ...]) -> None:
        missing = missing_gpus(self._gpus, inventory)
        self._inventory, self._missing = inventory, tuple(missing.values())
        self._gpus = missing | {device.uuid: device for device in inventory if device.gi < 0}
