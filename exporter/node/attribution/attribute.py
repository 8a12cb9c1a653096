"""Joins the devices of a node with the kubelet's allocations: who holds what, alone or with others. Pure.

A device is *held exclusively* when one pod holds it by an id that is not one of several slots. Only such a
device has a holder; everything else is told by pairs of device and container.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.device_id import Share, names_gpu, reference, resource_label
from exporter.node.attribution.device_lookup import DeviceLookup, Unmatched, UnmatchedReason
from exporter.node.devices.labels import NOBODY, Holder
from exporter.node.devices.readings import Device

Replicas = Literal["time-slicing", "mps"]
Sharing = Literal["exclusive", "time-slicing", "mps", "fraction", "passthrough", "unknown"]


class Container(NamedTuple):
    """A container of a pod, as the kubelet names it; the uid is empty where it is not known."""

    namespace: str
    pod: str
    name: str
    pod_uid: str = ""


class Pair(NamedTuple):
    """One container on one device through one resource; `device` is the position in the inventory.

    `resource` is spelled as a label value. `slots` counts the replicas held; 0 where there is nothing to share.
    """

    device: int
    container: Container
    resource: str
    sharing: Sharing
    slots: int


@dataclass(frozen=True, slots=True)
class Use:
    """How one device is used.

    `holder` is the exclusive one. Its container is empty where several of one pod hold the device together: the
    pod is certain then, and which of its containers does the work is not.
    `pods` is None where the number of holding pods is not known, or where the device consists of smaller ones
    and cannot itself be given out.
    """

    holder: Holder = NOBODY
    sharing: Sharing | None = None
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who holds the devices of `inventory`; `uses` has one entry for each of them, in the same order."""

    inventory: tuple[Device, ...]
    uses: tuple[Use, ...]
    pairs: tuple[Pair, ...] = ()
    unmatched: tuple[tuple[str, UnmatchedReason, int], ...] = ()
    """(resource as a label value, reason, number of ids)."""

    @property
    def holders(self) -> tuple[Holder, ...]:
        """The exclusive holder of each device, or nobody; what the labels of device series want."""
        return tuple(use.holder for use in self.uses)


@dataclass(frozen=True, slots=True)
class AttributionRules:
    """What only the operator can say."""

    extra_resources: frozenset[str] = frozenset()
    """Further resource names that count GPUs."""
    replicas: Replicas = "time-slicing"
    """How the device plugin shares a GPU between replicas: the ids do not tell."""


DEFAULT_RULES = AttributionRules()


def attribute(
    inventory: tuple[Device, ...], allocations: Allocations | None, rules: AttributionRules = DEFAULT_RULES
) -> Attribution:
    """Who holds each device.

    Nothing is claimed when `allocations` is None (attribution off, kubelet unknown) or when no device was read:
    then the device source's health says why, and every id would look unmatched.
    """
    if allocations is None or not inventory:
        return Attribution(inventory, (Use(),) * len(inventory))
    lookup = DeviceLookup(inventory)
    claims, unmatched = _sort_out(allocations, lookup, rules)
    doubtful = frozenset[int]().union(*(missing.doubt for missing in unmatched.values()))
    uses = []
    for position, device in enumerate(inventory):
        if parts := lookup.parts(position):
            uses.append(_use_of_divided(device, [claim for part in parts for claim in claims.get(part, ())], rules))
        else:
            uses.append(_use(claims.get(position, []), rules, in_doubt=position in doubtful))
    pairs = tuple(pair for position in sorted(claims) for pair in _pairs(position, claims[position], rules))
    return Attribution(inventory, tuple(uses), pairs, _counts(unmatched))


class _Claim(NamedTuple):
    """An allocation whose device was found."""

    container: Container
    resource: str
    share: Share
    slot: str


def _sort_out(
    allocations: Allocations, lookup: DeviceLookup, rules: AttributionRules
) -> tuple[dict[int, list[_Claim]], dict[tuple[str, str], Unmatched]]:
    """The claims on each device, and what could not be matched by (resource, id)."""
    claims: dict[int, list[_Claim]] = {}
    unmatched: dict[tuple[str, str], Unmatched] = {}
    for allocation in sorted(set(allocations)):
        if not names_gpu(allocation.resource, rules.extra_resources):
            continue
        resource, meant = resource_label(allocation.resource), reference(allocation)
        found = lookup.find(meant.target)
        if isinstance(found, Unmatched):
            unmatched[resource, allocation.device_id] = found
            continue
        container = Container(allocation.namespace, allocation.pod, allocation.container, allocation.pod_uid)
        claims.setdefault(found, []).append(_Claim(container, resource, meant.share, meant.slot))
    return claims, unmatched


def _use(claims: list[_Claim], rules: AttributionRules, *, in_doubt: bool) -> Use:
    if not claims:
        # An id that was not understood may mean this very device: then it is not free for certain.
        return Use(pods=None if in_doubt else 0)
    sharing = _sharing(claims, rules)
    return Use(_exclusive_holder(claims, sharing), sharing, len(_pods(claims)))


def _use_of_divided(device: Device, claims: list[_Claim], rules: AttributionRules) -> Use:
    """A GPU is not held by those who hold its instances; a GPU instance is, by the one pod in all of its parts.

    The memory of compute instances is measured on their GPU instance, so that pod belongs there too.
    """
    if device.gi < 0 or not claims:
        return Use()
    return Use(_exclusive_holder(claims, _sharing(claims, rules)))


def _sharing(claims: list[_Claim], rules: AttributionRules) -> Sharing:
    shares = {claim.share for claim in claims}
    if len(shares) > 1:
        return "unknown"
    share = shares.pop()
    if share == "replica":
        return rules.replicas
    if share != "fraction" and len(_pods(claims)) > 1:
        # Older kubelets list finished pods too: which of them holds the device cannot be told.
        return "unknown"
    return share


def _pods(claims: Iterable[_Claim]) -> set[tuple[str, str, str]]:
    return {(claim.container.namespace, claim.container.pod, claim.container.pod_uid) for claim in claims}


def _exclusive_holder(claims: list[_Claim], sharing: Sharing) -> Holder:
    if sharing not in {"exclusive", "passthrough"}:
        return NOBODY
    containers = {claim.container for claim in claims}
    namespace, pod, name, _ = claims[0].container
    return Holder(namespace, pod, name if len(containers) == 1 else "")


def _pairs(position: int, claims: list[_Claim], rules: AttributionRules) -> Iterator[Pair]:
    sharing = _sharing(claims, rules)
    slots: dict[tuple[Container, str], set[str]] = {}
    for claim in claims:
        held = slots.setdefault((claim.container, claim.resource), set())
        if claim.share in {"replica", "fraction"}:
            held.add(claim.slot)
    for (container, resource), held in sorted(slots.items()):
        yield Pair(position, container, resource, sharing, len(held))


def _counts(unmatched: dict[tuple[str, str], Unmatched]) -> tuple[tuple[str, UnmatchedReason, int], ...]:
    counts = Counter((resource, missing.reason) for (resource, _), missing in unmatched.items())
    return tuple((resource, reason, count) for (resource, reason), count in sorted(counts.items()))
