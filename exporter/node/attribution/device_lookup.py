"""Finds the device of a reference among those that were read, or says in one word why there is none."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from exporter.node.attribution.device_id import (
    Claim,
    Index,
    Instance,
    MigUuid,
    Minor,
    PciAddress,
    Target,
    Unknown,
    Uuid,
    parse,
)
from exporter.node.devices.readings import Device

UnmatchedReason = Literal["unknown_form", "unresolved_claim", "no_such_gpu", "no_such_instance", "partitioned"]
"""`partitioned`: the id means something that now consists of smaller devices."""


class Unmatched(NamedTuple):
    """No device for an id. `doubt` holds the positions of the devices that the id may nevertheless mean."""

    reason: UnmatchedReason
    doubt: frozenset[int] = frozenset()


class DeviceLookup:
    """The devices of one inventory by everything that may name them. Positions are those in the inventory."""

    def __init__(self, inventory: tuple[Device, ...]) -> None:
        self._inventory = inventory
        self._position: dict[Target, int] = {}
        # The finest last: a compute instance's UUID is listed by its GPU instance too, and means the former.
        for position in sorted(range(len(inventory)), key=lambda p: (inventory[p].gi >= 0, inventory[p].ci >= 0)):
            self._position |= dict.fromkeys(_names(inventory[position]), position)
        self._parts = {position: self._parts_of(device) for position, device in enumerate(inventory)}

    @property
    def whole(self) -> frozenset[int]:
        """The devices that can be given out: those that do not consist of smaller ones."""
        return frozenset(position for position, parts in self._parts.items() if not parts)

    def parts(self, position: int) -> frozenset[int]:
        """The instances of a GPU, or the compute instances of a GPU instance, that can be given out."""
        return self._parts[position]

    def find(self, target: Target) -> int | Unmatched:
        position = self._position.get(target)
        if position is None and isinstance(target, Instance):
            # One compute instance fills its GPU instance: then the device carries no compute instance id.
            position = self._position.get(Instance(target.parent, target.gi, -1))
        if position is None:
            return self._unmatched(target)
        if parts := self._parts[position]:
            return Unmatched("partitioned", parts)
        return position

    def _parts_of(self, device: Device) -> frozenset[int]:
        inside = [p for p, other in enumerate(self._inventory) if _contains(device, other)]
        divided = {self._inventory[p].gi for p in inside if self._inventory[p].ci >= 0}
        return frozenset(p for p in inside if self._inventory[p].ci >= 0 or self._inventory[p].gi not in divided)

    def _unmatched(self, target: Target) -> Unmatched:
        match target:
            case Claim():
                return Unmatched("unresolved_claim", self.whole)
            case Unknown():
                return Unmatched("unknown_form", self.whole)
            case MigUuid():
                return Unmatched("no_such_instance", self._may_be_instances())
            case Instance(parent=parent) if parent in self._position:
                board = self._position[parent]
                return Unmatched("no_such_instance", self._parts[board] or frozenset({board}))
            case _:
                return Unmatched("no_such_gpu")

    def _may_be_instances(self) -> frozenset[int]:
        # A GPU without instances may have been divided after the inventory was read.
        return frozenset(
            p for p in self.whole if self._inventory[p].gi >= 0 or self._inventory[p].mig_enabled is not False
        )


def _contains(device: Device, other: Device) -> bool:
    if device.uuid != other.uuid or device.ci >= 0:
        return False
    if device.gi < 0:
        return other.gi >= 0
    return other.gi == device.gi and other.ci >= 0


def _names(device: Device) -> Iterator[Target]:
    uuid = Uuid(device.uuid.lower())
    minor = Minor(device.minor if device.minor >= 0 else device.index)
    if device.gi < 0:
        yield from (uuid, minor, Index(device.index), PciAddress(device.pci_bus_id.upper()))
        return
    yield from (Instance(parent, device.gi, device.ci) for parent in (uuid, minor))
    yield from _mig_targets(device.mig_uuids)


def _mig_targets(mig_uuids: Iterable[str]) -> Iterator[Target]:
    return (parse(mig_uuid).target for mig_uuid in mig_uuids)
