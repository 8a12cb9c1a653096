"""Sums up which GPU workloads are pending. No I/O, no state."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.cluster.kubernetes.objects.records import Amounts
from exporter.cluster.scheduling.reasons.blocked_work import BlockedWork
from exporter.cluster.scheduling.reasons.pending_pods import PendingPod
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason


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
