"""Sums up a cluster: which GPU workloads are pending, and how many GPUs are free. No I/O, no state."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from exporter.cluster.kubernetes.records import Amounts, Node, Pod
from exporter.cluster.scheduling.blocked_work import BlockedWork
from exporter.cluster.scheduling.device_claims import DeviceCount
from exporter.cluster.scheduling.free_capacity import free_on, requested, schedulable, with_claimable
from exporter.cluster.scheduling.pending_pods import PendingPod
from exporter.cluster.scheduling.pending_reason import PendingReason


@dataclass(frozen=True, slots=True)
class PendingWork:
    """The pending GPU pods of a workload that have one reason, or a workload whose pods are missing."""

    namespace: str
    name: str
    type: str
    reason: PendingReason
    since: float
    """Since when the oldest of the pods is pending, or since the workload exists, in seconds since the epoch."""
    pods: tuple[str, ...]
    """Their names, the oldest first; none where the pods are missing."""
    requests: Amounts
    """Devices of all of them, by resource name."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The devices of one resource on the nodes with one GPU model."""

    model: str
    """Empty where no label names it."""
    resource: str
    nodes: int
    allocatable: int
    free: int
    """On all nodes."""
    schedulable: int
    """Free on nodes that are ready and not cordoned."""
    largest: int
    """Most free devices on one such node."""

    @classmethod
    def of(cls, model: str, resource: str, nodes: list[tuple[int, int, bool]]) -> Self:
        """Sum over nodes, each as (allocatable, free, schedulable)."""
        usable = [free for _, free, schedulable in nodes if schedulable]
        return cls(
            model,
            resource,
            sum(count > 0 for count, _, _ in nodes),
            sum(count for count, _, _ in nodes),
            sum(free for _, free, _ in nodes),
            sum(usable),
            max(usable, default=0),
        )


def pending_work(pending: Iterable[PendingPod], blocked: Iterable[BlockedWork]) -> list[PendingWork]:
    """All pending GPU workloads, the oldest first: one for each reason that its pods have."""
    pods: dict[tuple[str, str, str, PendingReason], list[PendingPod]] = defaultdict(list)
    for each in pending:
        pods[each.pod.namespace, each.pod.workload, each.pod.workload_type, each.reason].append(each)
    found = [_workload(key, sorted(each, key=lambda one: (one.since, one.pod.name))) for key, each in pods.items()]
    found += [
        PendingWork(each.namespace, each.name, each.kind.lower(), each.reason, each.created, (), each.requests)
        for each in blocked
    ]
    return sorted(found, key=lambda each: (each.since, each.namespace, each.name, each.reason))


def _workload(key: tuple[str, str, str, PendingReason], pods: list[PendingPod]) -> PendingWork:
    sums: Counter[str] = Counter()
    for each in pods:
        sums.update(dict(each.pod.requests))
    return PendingWork(*key, pods[0].since, tuple(each.pod.name for each in pods), tuple(sorted(sums.items())))


def capacities(
    nodes: Iterable[Node], pods: Iterable[Pod], claimable: Mapping[str, tuple[DeviceCount, ...]]
) -> list[Capacity]:
    """Sum the devices of nodes by GPU model and resource; `claimable` are those of DRA, by node."""
    requests = requested(pods)
    found: dict[tuple[str, str], list[tuple[int, int, bool]]] = defaultdict(list)
    for node in nodes:
        counts = claimable.get(node.name, ())
        allocatable = with_claimable(node.allocatable, tuple((each.name, each.allocatable) for each in counts))
        free = dict(with_claimable(free_on(node, requests), tuple((each.name, each.free) for each in counts)))
        for name, count in allocatable:
            found[node.description.model, name].append((count, free.get(name, 0), schedulable(node)))
    return [Capacity.of(*key, each) for key, each in sorted(found.items()) if any(count for count, _, _ in each)]
