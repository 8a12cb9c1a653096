"""Remembers the GPUs of the node, so that one that is no longer listed is missed.

A source knows only what its library has listed: a GPU that is lost while the reader process or the source changes, or
while the exporter is restarted with a state file, would otherwise be forgotten. No I/O.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.readings import Readings


def missing_gpus(known: Mapping[str, Device], listed: Iterable[Device]) -> dict[str, Device]:
    """Return, by UUID, the known GPUs that are not listed, except where another one is at the same PCI address.

    That one has replaced it. Fewer GPUs than before are never a reason to forget one.
    """
    devices = tuple(listed)
    uuids = {device.uuid for device in devices}
    addresses = {device.pci_bus_id for device in devices if device.pci_bus_id}
    return {uuid: gpu for uuid, gpu in known.items() if uuid not in uuids and gpu.pci_bus_id not in addresses}


class KnownGpus:
    """Every GPU that was read once, and has neither been replaced by another one nor forgotten on request."""

    def __init__(self, gpus: Iterable[Device] = ()) -> None:
        """`gpus` are those that are known from before."""
        self._gpus = {gpu.uuid: gpu for gpu in gpus}
        self._inventory: tuple[Device, ...] | None = None
        """What was listed last; None before that, and to compare it with the known GPUs again."""
        self._missing: tuple[Device, ...] = ()

    def __len__(self) -> int:
        return len(self._gpus)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The known GPUs, listed or missing."""
        return tuple(self._gpus.values())

    def change(self, more: Iterable[Device], forgotten: Collection[str]) -> None:
        """Know these GPUs too, and those with these UUIDs no longer. One that is still listed is known all the same."""
        known = {gpu.uuid: gpu for gpu in more} | self._gpus
        self._gpus = {uuid: gpu for uuid, gpu in known.items() if uuid not in forgotten}
        self._inventory = None

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
