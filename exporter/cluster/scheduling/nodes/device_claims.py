"""Finds out what pods ask for through ResourceClaims, and which devices nodes offer through DRA. No I/O, no state."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from exporter.cluster.kubernetes.converting.devices import ClaimableDevice, DeviceClass, ResourceClaim, ResourceSlice
from exporter.cluster.kubernetes.objects.records import Amounts, Pod, PodClaim
from exporter.cluster.scheduling.nodes.shared_counters import DeviceOfSlice, Shared, after, fitting, shared
from exporter.gpu_names import is_gpu_class

UNKNOWN_CLASS = "resourceclaim"
"""The resource of a pending pod of whose claims it cannot be found out what they ask for."""
ClaimKey = tuple[str, str]
"""(namespace, name)."""


class DeviceCount(NamedTuple):
    """Devices of one DeviceClass on one node."""

    name: str
    """The resource name of the class, else its own."""
    capacity: int
    allocatable: int
    """Without those that have a taint."""
    requested: int
    """Those that claims were given."""
    free: int


@dataclass(frozen=True, slots=True)
class DeviceObjects:
    """The DRA objects that are known; each is None where it is not read."""

    claims: Mapping[ClaimKey, ResourceClaim] | None = None
    templates: Mapping[ClaimKey, ResourceClaim] | None = None
    classes: Mapping[str, DeviceClass] | None = None
    slices: tuple[ResourceSlice, ...] | None = None
    by_node: Mapping[str, tuple[DeviceCount, ...]] = field(default_factory=dict)
    """What `offered` finds."""

    def names_of(self, resource: str) -> tuple[str, ...]:
        """All names by which pods ask for what nodes offer as this resource: its own and those of its classes."""
        classes = (each.name for each in (self.classes or {}).values() if each.resource == resource)
        return (resource, *classes)


def with_claims(pods: Iterable[Pod], objects: DeviceObjects) -> tuple[Pod, ...]:
    """Return the GPU pods among these, with what their claims ask for among their requests."""
    found = (_resolved(pod, objects) if pod.claims else pod for pod in pods)
    return tuple(pod for pod in found if pod is not None)


def _resolved(pod: Pod, objects: DeviceObjects) -> Pod | None:
    requests, unknown, missing = dict(pod.requests), False, False
    for claim in pod.claims:
        asked, absent = _asked(pod.namespace, claim, objects)
        missing = missing or absent
        unknown = unknown or asked is None
        for name, count in asked or ():
            if _means_gpus(name, objects):
                requests[name] = requests.get(name, 0) + count
    if not requests and unknown and pod.phase == "Pending":
        requests = {UNKNOWN_CLASS: len(pod.claims)}
    if not requests:
        return None
    plan = msgspec.structs.replace(pod.plan, claim_missing=missing)
    return msgspec.structs.replace(pod, requests=tuple(sorted(requests.items())), plan=plan)


def _asked(namespace: str, claim: PodClaim, objects: DeviceObjects) -> tuple[Amounts | None, bool]:
    """Return what a claim asks for, None where that is not known, and whether the claim is known not to exist."""
    if claim.device_class:
        return ((claim.device_class, claim.count),), False
    found = objects.claims.get((namespace, claim.claim)) if objects.claims is not None else None
    missing = found is None and objects.claims is not None
    if found is None and objects.templates is not None and claim.template:
        found = objects.templates.get((namespace, claim.template))
    return (None if found is None else found.requests), missing


def _means_gpus(device_class: str, objects: DeviceObjects) -> bool:
    found = (objects.classes or {}).get(device_class)
    return is_gpu_class(device_class) if found is None else found.gpus


def offered(objects: DeviceObjects) -> dict[str, tuple[DeviceCount, ...]]:
    """Count the devices of each GPU DeviceClass on each node."""
    classes = [each for each in (objects.classes or {}).values() if each.gpus]
    taken = {device for claim in (objects.claims or {}).values() for device in claim.allocated}
    newest: dict[tuple[str, str], int] = {}
    for each in objects.slices or ():
        pool = (each.driver, each.pool)
        newest[pool] = max(newest.get(pool, 0), each.generation)
    devices: dict[str, list[DeviceOfSlice]] = defaultdict(list)
    current = [each for each in objects.slices or () if each.generation == newest[each.driver, each.pool]]
    for each in current:
        devices[each.node].extend((each, device) for device in each.devices)
    whole = shared(current)
    return {node: tuple(_counts(found, classes, taken, whole)) for node, found in devices.items()}


def _counts(
    devices: list[DeviceOfSlice],
    classes: Iterable[DeviceClass],
    taken: set[tuple[str, str, str]],
    whole: Shared,
) -> Iterable[DeviceCount]:
    left = after(whole, ((s, device) for s, device in devices if (s.driver, s.pool, device.name) in taken))
    for each in classes:
        matching = [(s, device) for s, device in devices if _matches(each, s, device)]
        if not matching:
            continue
        allocatable = [(s, device) for s, device in matching if not device.tainted]
        given = sum((s.driver, s.pool, device.name) in taken for s, device in matching)
        unused = [(s, device) for s, device in allocatable if (s.driver, s.pool, device.name) not in taken]
        capacity, healthy, free = fitting(matching, whole), fitting(allocatable, whole), fitting(unused, left)
        yield DeviceCount(each.resource or each.name, capacity, healthy, given, free)


def _matches(device_class: DeviceClass, of: ResourceSlice, device: ClaimableDevice) -> bool:
    if device_class.drivers and of.driver not in device_class.drivers:
        return False
    return not device_class.types or device.type in device_class.types
