"""Which devices the kubelet offers to pods through device plugins: what it says, and the metric. No I/O.

A device plugin that calls a device unhealthy after a critical XID calls it so until the plugin is restarted, also where
NVML finds nothing wrong with it: no pod gets the GPU any more, and nothing else on the node shows that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from exporter.gpu_names import ResourcePatterns
from exporter.metric import Family, Kind, metric
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.device_id import DeviceTarget, OtherVendorDevice, UnknownId, reference
from exporter.node.attribution.matching.device_lookup import DeviceLookup, Unmatched, UnmatchedReason
from exporter.node.devices.entities.device import Device
from exporter.node.devices.series.labels import INSTANCE_IDS, instance_ids
from exporter.reason import Reason

OfferedId = tuple[str, str]
"""A resource, and a device id of it; ids of replicas are those of their device."""
OfferedIds = frozenset[OfferedId]

ALLOCATABLE = metric(
    "gpugauge_device_allocatable",
    Kind.GAUGE,
    "1 when the kubelet offers a device to pods, 0 when it does not: its device plugin calls it unhealthy or does "
    "not list it. Absent where that is not certain, and where no device plugin offers GPUs (DRA).",
    "gpu",
    "UUID",
    *INSTANCE_IDS,
    "node",
    optional=(*INSTANCE_IDS, "node"),
)

METRICS = (ALLOCATABLE,)


@dataclass(frozen=True, slots=True)
class Offer:
    """What the kubelet offers to pods."""

    ids: OfferedIds | None = None
    """None where that is not known."""
    before: OfferedIds | None = None
    """What it offered a minute before: device plugins register one after another when the kubelet restarts."""
    problem: tuple[Reason, str] | None = None
    """Why it is not known, where that can be mended: reason and message."""


UNKNOWN = Offer()


def offered_devices(
    inventory: tuple[Device, ...], offer: Offer, indexed: ResourcePatterns, down: tuple[str, ...] = ()
) -> tuple[bool | None, ...]:
    """Whether the kubelet offers each device; None where that is not certain.

    It is certain that a device is not offered when no id means it or could mean it, now and a minute before, while
    others are offered. `indexed` are the resources whose ids are indices of NVML, `down` the UUIDs of GPUs that cannot
    be read.
    """
    lookup = DeviceLookup(inventory, down)
    meant, possible = _meant(offer.ids or frozenset(), lookup, indexed)
    if not any(_of_nvidia(each, indexed) for each in offer.ids or ()):
        return (None,) * len(inventory)
    before, possible_before = _meant(offer.before or frozenset(), lookup, indexed)
    uncertain = possible | before | possible_before if offer.before is not None else lookup.allocatable

    def offered(position: int) -> bool | None:
        if position in meant:
            return True
        return None if position in uncertain or position not in lookup.allocatable else False

    return tuple(map(offered, range(len(inventory))))


def unmatched_offer(
    inventory: tuple[Device, ...], ids: OfferedIds, indexed: ResourcePatterns, down: tuple[str, ...] = ()
) -> Iterator[tuple[OfferedId, UnmatchedReason]]:
    """The ids that match no device, in order, and why."""
    lookup = DeviceLookup(inventory, down)
    for each in sorted(ids):
        found = lookup.find(_target(each, indexed))
        if isinstance(found, Unmatched):
            yield each, found.reason


@dataclass(slots=True)
class OfferCache:
    """Keeps the family of the last collection, until devices or what is offered change. Not thread-safe."""

    node: str
    indexed: ResourcePatterns = field(default_factory=ResourcePatterns)
    _inputs: tuple[tuple[Device, ...], Offer, tuple[str, ...]] | None = None
    _family: tuple[Family, ...] = ()

    def get(self, inventory: tuple[Device, ...], offer: Offer, down: tuple[str, ...] = ()) -> tuple[Family, ...]:
        """Return the family; none where nothing is certain."""
        if self._inputs != (inventory, offer, down):
            states = offered_devices(inventory, offer, self.indexed, down) if offer.ids is not None else ()
            self._family = _family(inventory, states, self.node)
            self._inputs = inventory, offer, down
        return self._family


def _family(inventory: tuple[Device, ...], states: tuple[bool | None, ...], node: str) -> tuple[Family, ...]:
    samples = [
        ALLOCATABLE.sample(int(state), gpu=str(device.index), UUID=device.uuid, **instance_ids(device), node=node)
        for device, state in zip(inventory, states, strict=False)
        if state is not None
    ]
    return (Family(ALLOCATABLE, samples),) if samples else ()


def _meant(ids: OfferedIds, lookup: DeviceLookup, indexed: ResourcePatterns) -> tuple[set[int], set[int]]:
    """Positions of the devices that the ids mean, and of those that ids without a device could mean."""
    meant: set[int] = set()
    possible: set[int] = set()
    for each in ids:
        found = lookup.find(_target(each, indexed))
        if isinstance(found, Unmatched):
            possible |= lookup.narrowed(found, each[0]).candidates
        else:
            meant.add(found)
    return meant, possible


def _of_nvidia(offered: OfferedId, indexed: ResourcePatterns) -> bool:
    target = _target(offered, indexed)
    return not (isinstance(target, OtherVendorDevice) or (isinstance(target, UnknownId) and target.empty))


def _target(offered: OfferedId, indexed: ResourcePatterns) -> DeviceTarget:
    resource, device_id = offered
    return reference(Allocation("", "", "", resource, device_id), indexed).target
