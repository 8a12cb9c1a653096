"""Finds the device that a parsed device id means, among the devices that were read, or why there is none. No I/O."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from exporter.gpu_names import mig_slices
from exporter.node.attribution.allocation import OTHERS_UNKNOWN
from exporter.node.attribution.matching.device_id import (
    ClaimDevice,
    DeviceMinor,
    DeviceTarget,
    GpuUuid,
    MigInstance,
    MigUuid,
    NvmlIndex,
    OtherVendorDevice,
    PciAddress,
    UnknownId,
    UnlistedDevice,
    parse,
)
from exporter.node.devices.entities.device import Device
from exporter.node.dra.device import DraDevice, may_be_profile, same_profile
from exporter.reason import Reason


class UnmatchedReason(Reason):
    """Why a device id that the kubelet lists matches no device: label `reason` of `gpugauge_unmatched_device_ids`."""

    UNKNOWN_FORM = (
        "unknown_form",
        "The id has a spelling that gpugauge cannot parse.",
        "Name its resource in --index-resource-names if it is an index, else report it: devices may count as unknown.",
    )
    OTHER_VENDOR = (
        "other_vendor",
        "The resource is AMD's or Intel's, and the id spells no NVIDIA device: no device is meant that gpugauge reads.",
        "None needed, or leave the resource out of --nvidia-resource-names.",
    )
    EMPTY = (
        "empty",
        "The id is empty: it names no device, so it makes no device's allocation unknown.",
        "Check the device plugin: it gave the kubelet a device without an id.",
    )
    INIT_CONTAINER = (
        "init_container",
        "A device that only an init container was given, and that the kubelet does not list: it may be any of several.",
        "None needed: the devices that it may be count as allocation unknown while the pod exists.",
    )
    KUBELET_UNKNOWN = (
        "kubelet_unknown",
        "The kubelet's list is not known: devices are those that statuses of pods name; others may be allocated too.",
        "Look for gpugauge_source_problem with source kubelet.",
    )
    UNRESOLVED_CLAIM = (
        "unresolved_claim",
        "The id names a device of a ResourceClaim (DRA), and which one of several devices it is cannot be told.",
        "None needed: the devices that it may be count as allocation unknown while the kubelet lists no other user.",
    )
    CLAIM_UNREAD = (
        "claim_unread",
        "The ResourceClaim (DRA) of the device was not read yet: its pod may have it for monitoring alone.",
        "None for some seconds; then look for gpugauge_source_problem with source resourceclaims.",
    )
    NO_SUCH_GPU = (
        "no_such_gpu",
        "The id names a GPU that was not read.",
        "Compare gpugauge_devices_expected with gpugauge_devices_observed: the GPU may be lost or hidden.",
    )
    NO_SUCH_INSTANCE = (
        "no_such_instance",
        "The id names a MIG device that was not read.",
        "The MIG layout changed after the device plugin or DRA driver listed its devices: restart that.",
    )
    PARTITIONED = (
        "partitioned",
        "The id names a GPU or GPU instance that now consists of smaller devices.",
        "The MIG layout changed after the device plugin or DRA driver listed its devices: restart that.",
    )


class Unmatched(NamedTuple):
    """No device was found for an id. `candidates` are the positions of the devices that it may nevertheless mean."""

    reason: UnmatchedReason
    candidates: frozenset[int] = frozenset()


class DeviceLookup:
    """Indexes the devices of one inventory by everything that can name them. Positions are those in the inventory.

    `down` are the UUIDs of GPUs that cannot be read now. Once such a GPU is gone, the driver can give its index, minor
    number and PCI address to another, which is then meant.
    """

    def __init__(self, inventory: tuple[Device, ...], down: Collection[str] = ()) -> None:
        self._inventory = inventory
        self._position: dict[DeviceTarget, int] = {}
        # What is last takes precedence: GPUs that can be read, and of each the smallest devices, because a GPU instance
        # lists its compute instances' UUIDs too.
        key = [(device.uuid not in down, device.gi >= 0, device.ci >= 0) for device in inventory]
        for position in sorted(range(len(inventory)), key=key.__getitem__):
            self._position |= dict.fromkeys(_names(inventory[position]), position)
        self._partitions = {position: self._partitions_of(device) for position, device in enumerate(inventory)}

    @property
    def allocatable(self) -> frozenset[int]:
        """Positions of the devices that can be allocated: those that do not consist of smaller ones."""
        return frozenset(position for position, partitions in self._partitions.items() if not partitions)

    def partitions(self, position: int) -> frozenset[int]:
        """Positions of the smallest devices that a GPU or a GPU instance consists of; empty where it has none."""
        return self._partitions[position]

    def find(self, target: DeviceTarget) -> int | Unmatched:
        """Return the position of the device that the target means, or why there is none."""
        if isinstance(target, ClaimDevice):
            return self._claimed(target.device)
        position = self._position.get(target)
        if position is None and isinstance(target, MigInstance):
            # The only compute instance of a GPU instance is listed as the GPU instance, without a compute instance id.
            position = self._position.get(MigInstance(target.parent, target.gi, -1))
        if position is None:
            return self._unmatched(target)
        if partitions := self._partitions[position]:
            return Unmatched(UnmatchedReason.PARTITIONED, partitions)
        return position

    def narrowed(self, missing: Unmatched, resource: str) -> Unmatched:
        """Leave out the candidates that a resource rules out: `nvidia.com/mig-2g.20gb` are MIG devices of that size.

        The memory is not compared: sources round it differently.
        """
        slices = mig_slices(resource)
        if not slices:
            return missing
        may_be = (p for p in missing.candidates if _may_have(self._inventory[p], slices))
        return Unmatched(missing.reason, frozenset(may_be))

    def _claimed(self, claimed: DraDevice) -> int | Unmatched:
        """Find a device of a ResourceClaim: by its UUID where that is known, else by what tells it from the others."""
        match claimed.type:
            case "gpu" if claimed.uuid:
                return self.find(GpuUuid(claimed.uuid.lower()))
            case "gpu" if claimed.minor >= 0:
                return self.find(DeviceMinor(claimed.minor))
            case "mig" if claimed.uuid or claimed.parent_uuid or claimed.minor >= 0:
                return self._claimed_mig_device(claimed)
            case "vfio" if claimed.pci_address:
                return self.find(parse(claimed.pci_address).target)
            case "vfio":  # only a GPU as a whole can be passed through
                return Unmatched(UnmatchedReason.UNRESOLVED_CLAIM, self._where(lambda device: device.gi < 0))
        return Unmatched(UnmatchedReason.UNRESOLVED_CLAIM, self.allocatable)

    def _claimed_mig_device(self, claimed: DraDevice) -> int | Unmatched:
        found = self.find(parse(claimed.uuid).target) if claimed.uuid else None
        if isinstance(found, int):
            return found
        parent: DeviceTarget = DeviceMinor(claimed.minor)
        if claimed.parent_uuid:
            parent = GpuUuid(claimed.parent_uuid.lower())
        elif found is not None and claimed.minor < 0:
            return found
        gpu = self._position.get(parent)
        if gpu is None:
            return Unmatched(UnmatchedReason.NO_SUCH_GPU, self._without(parent))
        fitting = [] if claimed.uuid else self._fitting(claimed, self._inventory[gpu])
        if not fitting:
            return Unmatched(UnmatchedReason.NO_SUCH_INSTANCE, self._partitions[gpu] or frozenset({gpu}))
        only = fitting[0] if len(fitting) == 1 else None
        if only is not None and not self._partitions[only] and self._is_of(only, claimed):
            return only
        # Which one of them is not guessed: a pod would be named on a device that another one has.
        candidates = (self._partitions[position] or {position} for position in fitting)
        return Unmatched(UnmatchedReason.UNRESOLVED_CLAIM, frozenset[int]().union(*candidates))

    def _fitting(self, claimed: DraDevice, gpu: Device) -> list[int]:
        """Positions of the GPU instances of a GPU that may be a MIG device without a UUID, which the driver has made.

        The driver makes it before the kubelet lists it (source).
        """
        instances = {p: each for p, each in enumerate(self._inventory) if _contains(gpu, each) and each.ci < 0}
        exact = [p for p in instances if self._is_of(p, claimed)]
        return exact or [p for p, each in instances.items() if may_be_profile(each.profile, claimed.profile)]

    def _is_of(self, position: int, claimed: DraDevice) -> bool:
        return same_profile(self._inventory[position].profile, claimed.profile)

    def _partitions_of(self, device: Device) -> frozenset[int]:
        inside = [p for p, other in enumerate(self._inventory) if _contains(device, other)]
        shared_instances = {self._inventory[p].gi for p in inside if self._inventory[p].ci >= 0}
        return frozenset(
            p for p in inside if self._inventory[p].ci >= 0 or self._inventory[p].gi not in shared_instances
        )

    def _unmatched(self, target: DeviceTarget) -> Unmatched:
        match target:
            case OtherVendorDevice():
                return Unmatched(UnmatchedReason.OTHER_VENDOR)
            case UnlistedDevice(text=text):
                others = text == OTHERS_UNKNOWN
                reason = UnmatchedReason.KUBELET_UNKNOWN if others else UnmatchedReason.INIT_CONTAINER
                return Unmatched(reason, self.allocatable)
            case UnknownId() if target.empty:
                return Unmatched(UnmatchedReason.EMPTY)
            case UnknownId():
                return Unmatched(UnmatchedReason.UNKNOWN_FORM, self.allocatable)
            case MigUuid():
                return Unmatched(UnmatchedReason.NO_SUCH_INSTANCE, self._may_be_instances())
            case MigInstance(parent=parent) if parent in self._position:
                gpu = self._position[parent]
                return Unmatched(UnmatchedReason.NO_SUCH_INSTANCE, self._partitions[gpu] or frozenset({gpu}))
            case _:
                return Unmatched(UnmatchedReason.NO_SUCH_GPU, self._without(target))

    def _without(self, target: DeviceTarget) -> frozenset[int]:
        """Positions of the devices of which it is not known whether they are named so."""
        match target:
            case DeviceMinor() | MigInstance(parent=DeviceMinor()):
                return self._where(lambda device: device.minor < 0)
            case PciAddress():
                return self._where(lambda device: not device.pci_bus_id)
            case _:
                return frozenset()

    def _may_be_instances(self) -> frozenset[int]:
        # A GPU without MIG devices may have been partitioned after the inventory was read.
        return self._where(lambda device: device.gi >= 0 or device.mig_enabled is not False)

    def _where(self, may_be_meant: Callable[[Device], bool]) -> frozenset[int]:
        return frozenset(position for position in self.allocatable if may_be_meant(self._inventory[position]))


def _contains(device: Device, other: Device) -> bool:
    if device.uuid != other.uuid or device.ci >= 0:
        return False
    if device.gi < 0:
        return other.gi >= 0
    return other.gi == device.gi and other.ci >= 0


def _may_have(device: Device, slices: str) -> bool:
    """Whether a device has this size, or is a GPU that may have been partitioned after it was read."""
    if device.gi < 0:
        return device.mig_enabled is not False
    return not device.profile or device.ci >= 0 or device.profile.startswith(f"{slices}.")


def _names(device: Device) -> Iterator[DeviceTarget]:
    parents: list[GpuUuid | DeviceMinor] = [GpuUuid(device.uuid.lower())]
    if device.minor >= 0:
        parents.append(DeviceMinor(device.minor))
    if device.gi < 0:
        yield from (*parents, NvmlIndex(device.index), PciAddress(device.pci_bus_id.upper()))
        return
    yield from (MigInstance(parent, device.gi, device.ci) for parent in parents)
    yield from _mig_targets(device.mig_uuids)


def _mig_targets(mig_uuids: Iterable[str]) -> Iterator[DeviceTarget]:
    return (parse(mig_uuid).target for mig_uuid in mig_uuids)
