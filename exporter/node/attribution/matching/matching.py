"""Matches the kubelet's allocations with the devices that they mean. No I/O, no state."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.gpu_names import GPU_DRIVER, resource_label
from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.attribution.matching.device_id import Share, device_key, names_gpu, placed_by_scheduler, reference
from exporter.node.attribution.matching.device_lookup import DeviceLookup, Unmatched, UnmatchedReason
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.dra.knowledge import DraKnowledge
from exporter.node.dra.resource_claims import ClaimedDevice


class MatchedAllocation(NamedTuple):
    """An allocation whose device is in the inventory."""

    allocation: Allocation
    resource: str
    """As a label value: the resource that the kubelet reports, or the DeviceClass of a claim where that is known."""
    share: Share
    replica: str
    reserved: bool
    """Whether the container is that of a reservation pod, which never uses the device."""

    @property
    def placed(self) -> bool:
        """Whether the scheduler has stated it, which gives out the device or its parts."""
        return self.allocation.placed


@dataclass(slots=True)
class Matches:
    """What the kubelet's allocations mean."""

    matched: dict[int, list[MatchedAllocation]] = field(default_factory=dict)
    """By position of their device."""
    unmatched: dict[tuple[str, str], Unmatched] = field(default_factory=dict)
    """What is known of the ids that match no device, by (resource, id)."""
    placed_elsewhere: bool = False
    """Whether containers may be on other GPUs than their ids say."""

    def of(self, positions: Iterable[int]) -> list[MatchedAllocation]:
        return [allocation for each in positions for allocation in self.matched.get(each, ())]

    def uncertain(self, lookup: DeviceLookup) -> frozenset[int]:
        """Positions of the devices that may be allocated although no id matches them."""
        if self.placed_elsewhere:
            return lookup.allocatable
        return frozenset[int]().union(*(missing.candidates for missing in self.unmatched.values()))


def matched_allocations(
    allocations: Allocations, lookup: DeviceLookup, rules: AttributionRules, dra: DraKnowledge
) -> Matches:
    """Match each allocation of a GPU. One that has a device for monitoring alone is left out."""
    matches = Matches()
    for allocation in sorted(set(allocations)):
        if not names_gpu(allocation.resource, rules.gpus):
            continue
        claimed = _claimed(allocation, rules, dra)
        if claimed is not None and claimed.monitoring:
            continue
        resource = resource_label((claimed and claimed.device_class) or allocation.resource)
        meant = reference(allocation, rules.indexed, dra)
        matches.placed_elsewhere |= not allocation.placed and placed_by_scheduler(allocation.resource, meant.share)
        found = lookup.find(meant.target)
        if claimed is None:
            found = _unread(found)
        if isinstance(found, Unmatched):
            matches.unmatched[resource, allocation.device_id] = lookup.narrowed(found, allocation.resource)
            continue
        reserved = allocation.namespace in rules.reservation_namespaces
        matched = MatchedAllocation(allocation, resource, meant.share, meant.replica, reserved)
        matches.matched.setdefault(found, []).append(matched)
    return matches


_NOT_CLAIMED = ClaimedDevice()


def _claimed(allocation: Allocation, rules: AttributionRules, dra: DraKnowledge) -> ClaimedDevice | None:
    """How a ResourceClaim has the device; None where that is not known yet."""
    if allocation.resource != GPU_DRIVER:
        return _NOT_CLAIMED
    if dra.claims is None:
        return ClaimedDevice(monitoring=allocation.namespace in rules.monitoring_namespaces)
    return dra.claimed(allocation.claim[:2], device_key(allocation))


def _unread(found: int | Unmatched) -> Unmatched:
    """Only the devices that may be meant become uncertain: the pod may have them for monitoring alone."""
    candidates = found.candidates if isinstance(found, Unmatched) else frozenset({found})
    return Unmatched(UnmatchedReason.CLAIM_UNREAD, candidates)
