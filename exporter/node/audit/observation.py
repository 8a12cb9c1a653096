"""What one collection says for the audit log: which allocations there are, and of which devices that is not known.

No I/O, no state. A device of which the kubelet lists no container is unallocated only where every device id that it
lists has a meaning: otherwise an id that was not understood may be this device.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.gpu_names import canonical_model
from exporter.node.attribution.matching.attribute import Attribution, DeviceAllocation, PodContainer
from exporter.node.attribution.pods.scheduler_placement import PodsByName
from exporter.node.audit.lines import DeviceId
from exporter.node.audit.reasons import GapReason
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.read_plan import PARTITIONED, device_levels


class AllocationKey(NamedTuple):
    """What makes two allocations the same one, as far as the kubelet's answers show it: they have no uid."""

    device: DeviceId
    namespace: str
    pod: str
    container: str
    resource: str


class SeenAllocation(NamedTuple):
    """An allocation in the kubelet's answer."""

    key: AllocationKey
    model: str
    uid: str
    """Of the pod; empty where it is not known."""
    sharing: str
    replicas: int
    share: float
    """The part of the device that counts for this container: those of all containers of a device add up to 1."""
    position: int
    """Of the device in the inventory."""


@dataclass(frozen=True, slots=True)
class NodeAllocations:
    """What one answer of the kubelet means for the devices of the node."""

    seen: Mapping[AllocationKey, SeenAllocation]
    unknown: Mapping[DeviceId, GapReason]
    """The devices that may be allocated to others than are seen."""
    devices: frozenset[DeviceId]
    """Every device of the node."""
    complete: bool
    """Whether every device id had a meaning. If not, what is allocated of a device that is not there is not known."""

    def lacks(self, device: DeviceId) -> bool:
        """Whether the answer certainly has no other allocation of a device than those that are seen."""
        if device in self.devices:
            return self.unknown.get(device) is not GapReason.UNMATCHED
        return self.complete


@dataclass(frozen=True, slots=True)
class AuditObservation:
    """What one collection says for the audit log."""

    at: float
    """Unix seconds."""
    node: NodeAllocations | GapReason
    """Why it is not known what is allocated, where that is so."""
    busy: Sequence[float | None] = ()
    """How busy each device is, by position, from 0 to 1."""
    memory: Sequence[float | None] = ()
    """How many bytes of its memory are used, by position."""
    pods: PodsByName = field(default_factory=dict)
    """What else is known of pods; nothing where pod metadata is off, and while it is not there."""
    listed: frozenset[tuple[str, str, str]] | None = None
    """(namespace, pod, container) of the allocations that the kubelet itself lists; None where these are all."""
    pods_known: bool = True
    """Whether what only pod metadata knows of allocations is known now."""
    lost: bool = False
    """Whether observations before this one are lost."""


def is_listed(observation: AuditObservation, key: AllocationKey) -> bool:
    """Whether the kubelet itself lists the container: pod metadata knows of other allocations, too."""
    return observation.listed is None or (key.namespace, key.pod, key.container) in observation.listed


def node_allocations(attribution: Attribution) -> NodeAllocations:
    """Find what is allocated, and of which devices that is not known."""
    levels = device_levels(attribution.inventory)
    ids = tuple(map(device_id, attribution.inventory))
    shares = _shares(attribution.allocations)
    seen = (
        _seen(allocation, attribution.inventory[allocation.device], share)
        for allocation, share in zip(attribution.allocations, shares, strict=True)
    )
    unknown = {
        ids[position]: GapReason.RESERVED if state.sharing is not None else GapReason.UNMATCHED
        for position, (state, level) in enumerate(zip(attribution.states, levels, strict=True))
        if state.pods is None and level not in PARTITIONED
    }
    complete = not attribution.unmatched
    return NodeAllocations({each.key: each for each in seen}, unknown, frozenset(ids), complete)


def device_id(device: Device) -> DeviceId:
    """What identifies the device over time."""
    return DeviceId(device.uuid, device.gi, device.ci, device.profile)


def _seen(allocation: DeviceAllocation, device: Device, share: float) -> SeenAllocation:
    container: PodContainer = allocation.container
    names = (container.namespace, container.pod, container.name)
    return SeenAllocation(
        AllocationKey(device_id(device), *names, allocation.resource),
        canonical_model(device.model),
        container.pod_uid,
        allocation.sharing,
        allocation.replicas,
        share,
        allocation.device,
    )


def _shares(allocations: Sequence[DeviceAllocation]) -> list[float]:
    """Divide each device between its containers, by their replicas."""
    weights = [max(allocation.replicas, 1) for allocation in allocations]
    totals: Counter[int] = Counter()
    for allocation, weight in zip(allocations, weights, strict=True):
        totals[allocation.device] += weight
    return [weight / totals[each.device] for each, weight in zip(allocations, weights, strict=True)]
