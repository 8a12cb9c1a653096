"""Joins the devices of a node with the kubelet's allocations: who has each device, and how. No I/O, no state.

Every (device, container) pair becomes a series of `gpugauge_allocation_info`, shared or not. The series of a device
carry a pod's labels only if that pod alone has the device: exclusively, or passed through to a virtual machine. Those
of a GPU instance with several compute instances do if one pod has all of them that are allocated. A device is shared
through replicas (several ids for one device, by time-slicing or MPS), through ResourceClaims (several pods have one
claim, or claims have shares of it) or fractions: shares that HAMi or Volcano numbers, or parts of a GPU that KAI or
Run:ai gives out and for which a reservation pod occupies it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.matching.device_id import device_key
from exporter.node.attribution.matching.device_lookup import DeviceLookup, Unmatched, UnmatchedReason
from exporter.node.attribution.matching.matching import MatchedAllocation, Matches, matched_allocations
from exporter.node.attribution.matching.rules import DEFAULT_RULES, AttributionRules
from exporter.node.devices.entities.device import Device
from exporter.node.devices.series.labels import NO_CONTAINER, ExclusiveContainer
from exporter.node.dra.knowledge import NO_KNOWLEDGE, DraKnowledge

Sharing = Literal["exclusive", "time-slicing", "mps", "dra-shared", "fraction", "passthrough", "unknown"]


class PodContainer(NamedTuple):
    """A container of a pod, as the kubelet names it. The uid is empty where it is not known."""

    namespace: str
    pod: str
    name: str
    pod_uid: str = ""


class DeviceClaim(NamedTuple):
    """The ResourceClaim (DRA) through which a device was allocated, and how its driver names the device."""

    namespace: str
    name: str
    driver: str
    pool: str
    device: str


class DeviceAllocation(NamedTuple):
    """A device that was given to a container. `device` is its position in the inventory.

    `resource` is spelled as a label value. `replicas` is how many replicas of a shared device the container was
    given, 0 where the device is not shared.
    """

    device: int
    container: PodContainer
    resource: str
    sharing: Sharing
    replicas: int
    replica_ids: tuple[str, ...] = ()
    """Their ids, of those that `replicas` counts."""


@dataclass(frozen=True, slots=True)
class AllocationState:
    """Whether and how one device is allocated."""

    container: ExclusiveContainer = NO_CONTAINER
    """The container that alone has the device.

    Its container name is empty where several containers of one pod have the device: the pod is certain, which of its
    containers uses the device is not.
    """
    sharing: Sharing | None = None
    """None when the device is unallocated, its allocation is unknown, or it is partitioned into smaller devices."""
    pods: int | None = None
    """How many pods the device is allocated to, 0 when it is unallocated.

    None where that is unknown, as on a device that a reservation pod occupies and of whose users nothing is known, and
    on a device that is partitioned and so cannot itself be allocated.
    """
    claim: DeviceClaim | None = None
    """The only claim through which the device was allocated, which several pods may share."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Which containers the devices of `inventory` are allocated to."""

    inventory: tuple[Device, ...]
    states: tuple[AllocationState, ...]
    """One per device of the inventory, in its order."""
    allocations: tuple[DeviceAllocation, ...] = ()
    unmatched: tuple[tuple[str, UnmatchedReason, int], ...] = ()
    """(resource as a label value, reason, number of ids)."""

    @property
    def containers(self) -> tuple[ExclusiveContainer, ...]:
        """Per device, the container that alone has it, or NO_CONTAINER."""
        return tuple(state.container for state in self.states)


def attribute(
    inventory: tuple[Device, ...],
    allocations: Allocations | None,
    rules: AttributionRules = DEFAULT_RULES,
    down: Collection[str] = (),
    dra: DraKnowledge = NO_KNOWLEDGE,
) -> Attribution:
    """Find the containers that each device is allocated to. `down` are the UUIDs of GPUs that cannot be read now.

    `dra` is what is known of devices of ResourceClaims.

    Every state is unknown when `allocations` is None (attribution is off, or the kubelet's answer is unknown), and
    when no device was read: then every id would look unmatched.
    """
    if allocations is None or not inventory:
        return Attribution(inventory, (AllocationState(),) * len(inventory))
    lookup = DeviceLookup(inventory, down)
    found = matched_allocations(allocations, lookup, rules, dra)
    uncertain = found.uncertain(lookup)
    states = []
    for position, device in enumerate(inventory):
        matched = found.of(lookup.partitions(position) or (position,))
        if lookup.partitions(position):
            states.append(_state_of_partitioned(device, matched, rules))
        else:
            states.append(_state(matched, rules, uncertain=position in uncertain))
    containers = tuple(each for position in sorted(found.matched) for each in _per_container(position, found, rules))
    return Attribution(inventory, tuple(states), containers, _counts(found.unmatched))


def _state(matched: list[MatchedAllocation], rules: AttributionRules, *, uncertain: bool) -> AllocationState:
    if not matched:
        # An id that was not understood may mean this very device: then it is not certainly unallocated.
        return AllocationState(pods=None if uncertain else 0)
    sharing = _sharing(matched, rules)
    if _reserved(matched):
        users = [each for each in matched if not each.reserved]
        known = all(each.placed for each in users)  # by the scheduler, which knows all of them
        return AllocationState(sharing=sharing, pods=len(_pods(users)) or None if known else None)
    return AllocationState(_exclusive_container(matched, sharing), sharing, len(_pods(matched)), _only_claim(matched))


def _state_of_partitioned(device: Device, inside: list[MatchedAllocation], rules: AttributionRules) -> AllocationState:
    """Find the state of a device that is partitioned into smaller ones, from the allocations of those.

    A GPU never carries the labels of the pods that have its MIG devices. A GPU instance carries a pod's labels when
    every allocated compute instance in it belongs to that pod: their memory is measured on the GPU instance.
    """
    if device.gi < 0 or not inside or _reserved(inside):
        return AllocationState()
    return AllocationState(_exclusive_container(inside, _sharing(inside, rules)))


def _reserved(matched: Iterable[MatchedAllocation]) -> bool:
    return any(allocation.reserved for allocation in matched)


def _sharing(matched: list[MatchedAllocation], rules: AttributionRules) -> Sharing:
    if _reserved(matched):
        return "fraction"
    shares = {allocation.share for allocation in matched}
    if len(shares) > 1:
        return "unknown"
    share = shares.pop()
    if share == "replica":
        return rules.replicas
    if share == "claim-share":
        return "dra-shared"
    if share != "fraction" and len(_pods(matched)) > 1:
        # Older kubelets list finished pods too: which of the pods has the device now cannot be known.
        return "dra-shared" if _only_claim(matched) is not None else "unknown"
    return share


def _only_claim(matched: Iterable[MatchedAllocation]) -> DeviceClaim | None:
    allocations = [each.allocation for each in matched]
    claims = {DeviceClaim(*each.claim[:2], *device_key(each)) for each in allocations}
    return claims.pop() if len(claims) == 1 and allocations[0].claim.name else None


def _pods(matched: Iterable[MatchedAllocation]) -> set[tuple[str, str, str]]:
    return {(each.namespace, each.pod, each.pod_uid) for each in (own.allocation for own in matched)}


def _container(matched: MatchedAllocation) -> PodContainer:
    allocation = matched.allocation
    return PodContainer(allocation.namespace, allocation.pod, allocation.container, allocation.pod_uid)


def _exclusive_container(matched: list[MatchedAllocation], sharing: Sharing) -> ExclusiveContainer:
    if sharing not in {"exclusive", "passthrough"}:
        return NO_CONTAINER
    containers = {_container(each) for each in matched}
    namespace, pod, name, _ = _container(matched[0])
    return ExclusiveContainer(namespace, pod, name if len(containers) == 1 else "")


def _per_container(position: int, matches: Matches, rules: AttributionRules) -> Iterator[DeviceAllocation]:
    """Yield the containers that have the device. A reservation pod is never among them."""
    matched = matches.matched[position]
    sharing = _sharing(matched, rules)
    replicas: dict[tuple[PodContainer, str], set[str]] = {}
    for allocation in matched:
        if allocation.reserved:
            continue
        own = replicas.setdefault((_container(allocation), allocation.resource), set())
        if allocation.share in {"replica", "fraction"}:
            own.add(allocation.replica)
    for (container, resource), own in sorted(replicas.items()):
        yield DeviceAllocation(position, container, resource, sharing, len(own), tuple(sorted(own)))


def _counts(unmatched: dict[tuple[str, str], Unmatched]) -> tuple[tuple[str, UnmatchedReason, int], ...]:
    counts = Counter((resource, missing.reason) for (resource, _), missing in unmatched.items())
    return tuple((resource, reason, count) for (resource, reason), count in sorted(counts.items()))
