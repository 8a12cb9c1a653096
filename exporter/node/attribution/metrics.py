"""The series that say who holds what: allocations, slots, holders, and ids that match no device. Pure by value.

Pod identity appears twice on each: `namespace pod container` for people and tenancy proxies, and under `gpu_…`
names that no target label of a scrape can replace.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from exporter.metric import Family, Kind, Labels, Metric, Value
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.attribute import DEFAULT_RULES, Attribution, AttributionRules, Container, attribute
from exporter.node.devices.readings import Device

_POD = ("namespace", "pod", "container", "gpu_namespace", "gpu_pod", "gpu_container", "gpu_pod_uid")
_INSTANCE = ("GPU_I_ID", "GPU_CI_ID")

INFO = Metric(
    "gpugauge_allocation_info",
    Kind.GAUGE,
    "A container that holds a device, alone or with others (always 1).",
    ("gpu", "UUID", *_INSTANCE, "GPU_I_PROFILE", *_POD, "resource", "sharing", "hostname"),
)
SLOTS = Metric(
    "gpugauge_allocation_slots",
    Kind.GAUGE,
    "Slots of a shared device that a container holds. A slot is no fixed part of the device.",
    ("UUID", *_INSTANCE, *_POD, "hostname"),
)
HOLDERS = Metric(
    "gpugauge_device_holders",
    Kind.GAUGE,
    "Pods that hold a device; 0 on a free one, absent where that is not known.",
    ("gpu", "UUID", *_INSTANCE, "hostname"),
)
UNMATCHED = Metric(
    "gpugauge_unmatched_device_ids",
    Kind.GAUGE,
    "Device ids that the kubelet lists and no device matches.",
    ("resource", "reason", "hostname"),
)

METRICS = (INFO, SLOTS, HOLDERS, UNMATCHED)

Pairs = tuple[tuple[str, str], ...]


def pod_labels(container: Container) -> Pairs:
    """A pod on a series of our own, in both spellings; the uid only where it is known."""
    plain = (("namespace", container.namespace), ("pod", container.pod), ("container", container.name))
    safe = tuple((f"gpu_{name}", value) for name, value in plain)
    uid = (("gpu_pod_uid", container.pod_uid),) if container.pod_uid else ()
    return (*plain, *safe, *uid)


def allocation_families(attribution: Attribution, hostname: str) -> tuple[Family, ...]:
    """The families that have a sample. `hostname` is the node's name; empty when it is not known."""
    node = (("hostname", hostname),) if hostname else ()
    samples: tuple[tuple[Metric, Iterator[tuple[Pairs, Value]]], ...] = (
        (INFO, _info(attribution)),
        (SLOTS, _slots(attribution)),
        (HOLDERS, _holders(attribution)),
        (UNMATCHED, _unmatched(attribution)),
    )
    families = (Family(metric, [(Labels((*pairs, *node)), value) for pairs, value in rows]) for metric, rows in samples)
    return tuple(family for family in families if family.samples)


@dataclass(slots=True)
class AllocationView:
    """An attribution with its families, made anew only when devices or allocations change.

    A pass mostly finds what the one before found; then the very same objects, labels included, are handed out.
    Owned by one pipeline and called from its sampler thread alone.
    """

    hostname: str
    rules: AttributionRules = DEFAULT_RULES
    _seen: tuple[tuple[Device, ...], Allocations | None] | None = None
    _view: tuple[Attribution, tuple[Family, ...]] | None = None

    def of(
        self, inventory: tuple[Device, ...], allocations: Allocations | None
    ) -> tuple[Attribution, tuple[Family, ...]]:
        """Equal to `attribute` and `allocation_families` for these devices and allocations."""
        if self._view is None or self._seen != (inventory, allocations):
            attribution = attribute(inventory, allocations, self.rules)
            self._view = attribution, allocation_families(attribution, self.hostname)
            self._seen = inventory, allocations
        return self._view


def _instance_labels(device: Device) -> Pairs:
    if device.gi < 0:
        return ()
    compute = (("GPU_CI_ID", str(device.ci)),) if device.ci >= 0 else ()
    return (("GPU_I_ID", str(device.gi)), *compute)


def _device_labels(device: Device) -> Pairs:
    return (("gpu", str(device.index)), ("UUID", device.uuid), *_instance_labels(device))


def _info(attribution: Attribution) -> Iterator[tuple[Pairs, Value]]:
    for pair in attribution.pairs:
        device = attribution.inventory[pair.device]
        profile = (("GPU_I_PROFILE", device.profile),) if device.profile else ()
        use = (("resource", pair.resource), ("sharing", pair.sharing))
        yield (*_device_labels(device), *profile, *pod_labels(pair.container), *use), 1


def _slots(attribution: Attribution) -> Iterator[tuple[Pairs, Value]]:
    held: dict[tuple[int, Container], int] = {}
    for pair in attribution.pairs:
        held[pair.device, pair.container] = held.get((pair.device, pair.container), 0) + pair.slots
    for (position, container), slots in held.items():
        device = attribution.inventory[position]
        if slots:
            yield (("UUID", device.uuid), *_instance_labels(device), *pod_labels(container)), slots


def _holders(attribution: Attribution) -> Iterator[tuple[Pairs, Value]]:
    for device, use in zip(attribution.inventory, attribution.uses, strict=True):
        if use.pods is not None:
            yield _device_labels(device), use.pods


def _unmatched(attribution: Attribution) -> Iterator[tuple[Pairs, Value]]:
    for resource, reason, count in attribution.unmatched:
        yield (("resource", resource), ("reason", reason)), count
