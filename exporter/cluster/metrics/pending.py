"""Metrics of pending GPU pods: how many there are, since when, and for which reason."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Pod
from exporter.cluster.metrics.pods import labels_of
from exporter.cluster.scheduling.free_capacity import node_groups, requested
from exporter.cluster.scheduling.node_selection import by_name
from exporter.cluster.scheduling.pending_reason import ClusterState, PendingReason, pending_reason
from exporter.cluster.view import ClusterView
from exporter.gpu_names import resource_label
from exporter.identity_labels import NAMESPACE, POD, WORKLOAD, namespace_labels, workload_labels
from exporter.metric import Family, Kind, Metric, Sample, metric

PODS = metric(
    "gpugauge_pending_pods",
    Kind.GAUGE,
    "GPU pods that are not running yet.",
    *NAMESPACE,
    "resource",
    "reason",
)
DEVICES = metric(
    "gpugauge_pending_devices",
    Kind.GAUGE,
    "Devices that GPU pods which are not running yet ask for.",
    *NAMESPACE,
    "resource",
    "reason",
)
OLDEST = metric(
    "gpugauge_pending_oldest_timestamp_seconds",
    Kind.GAUGE,
    "Since when the oldest of these pods is pending.",
    *NAMESPACE,
    "reason",
)
SINCE = metric(
    "gpugauge_pending_pod_since_timestamp_seconds",
    Kind.GAUGE,
    "Since when this GPU pod could have been scheduled, as seen by this watcher; the oldest pods only.",
    *POD,
    "resource",
    *WORKLOAD,
)
REASON = metric(
    "gpugauge_pending_pod_reason",
    Kind.GAUGE,
    "Constant 1 with the current reason why this GPU pod is not running; the oldest pods only.",
    *POD,
    *WORKLOAD,
    "reason",
)
UNTRACKED = metric(
    "gpugauge_pending_workloads_untracked",
    Kind.GAUGE,
    "Workloads of which no pod has series of its own, although it is pending long enough: there are too many pods.",
)
METRICS = (PODS, DEVICES, OLDEST, SINCE, REASON, UNTRACKED)

_MAX_COMPARISONS = 200_000
"""How many times a collection compares a pod with a group of nodes, at most; so many take about a second.

Where more would be needed, the scheduler's message alone decides.
"""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A GPU pod that is not running yet, and why."""

    pod: Pod
    reason: PendingReason

    @property
    def since(self) -> float:
        """Since when it is pending, in seconds since the epoch; a gated pod counts from its creation."""
        return self.pod.created if self.pod.schedulable_since is None else self.pod.schedulable_since


def pending_families(view: ClusterView, tracked: int, after: float) -> list[Family]:
    """The families; none while the pods are not known.

    Only the `tracked` oldest pods that are pending for more than `after` seconds get series of their own.
    """
    if view.pods is None:
        return []
    pending = pending_pods(view)
    own, others = _tracked(pending, tracked, view.now - after)
    return [
        *_counts(pending),
        Family(OLDEST, _oldest(pending)),
        Family(SINCE, [sample for each in own for sample in _since(each)]),
        Family(REASON, [_reason(each) for each in own]),
        Family(UNTRACKED, [UNTRACKED.sample(len(_workloads(others) - _workloads(own)))]),
    ]


def pending_pods(view: ClusterView) -> list[PendingPod]:
    """The GPU pods that are to run and do not run yet. One that is being deleted is not pending."""
    pods = [pod for pod in view.pods or () if pod.phase == "Pending" and not pod.deleting]
    cluster = _cluster_state(view, pods)
    known: dict[object, PendingReason] = {}
    found = []
    for pod in pods:
        # Pods of one workload mostly have the same message and constraints: each distinct case is decided once.
        case = (bool(pod.node), pod.gated, _condition(pod), pod.constraints, pod.requests)
        if case not in known:
            known[case] = pending_reason(pod, cluster)
        found.append(PendingPod(pod, known[case]))
    return found


def _condition(pod: Pod) -> tuple[str, str, str] | None:
    condition = pod.scheduled
    return None if condition is None else (condition.status, condition.reason, condition.message)


def _cluster_state(view: ClusterView, pending: list[Pod]) -> ClusterState:
    """The nodes to compare with, unless they are unknown or that would take too many comparisons."""
    tried = [pod for pod in pending if pod.scheduled and pod.scheduled.reason == "Unschedulable" and not pod.node]
    if view.nodes is None or not tried:
        return ClusterState(view.gpus)
    cases = len({(pod.constraints, pod.requests, pod.scheduled and pod.scheduled.message) for pod in tried})
    if any(by_name(pod.constraints) for pod in tried) and cases * len(view.nodes) > _MAX_COMPARISONS:
        return ClusterState(view.gpus)
    groups = node_groups(view.nodes, requested(view.pods or ()), tried)
    return ClusterState(view.gpus, groups if cases * len(groups) <= _MAX_COMPARISONS else None)


def _tracked(pending: Iterable[PendingPod], most: int, before: float) -> tuple[list[PendingPod], list[PendingPod]]:
    """The oldest schedulable pods that are pending long enough, and those beyond `most`."""
    old = [each for each in pending if each.pod.schedulable_since is not None and each.since < before]
    old.sort(key=lambda each: (each.since, each.pod.uid))
    return old[:most], old[most:]


def _workloads(pending: Iterable[PendingPod]) -> set[tuple[str, str, str]]:
    return {(each.pod.namespace, each.pod.workload, each.pod.workload_type) for each in pending}


def _counts(pending: Iterable[PendingPod]) -> tuple[Family, Family]:
    pods: Counter[tuple[str, str, str]] = Counter()
    devices: Counter[tuple[str, str, str]] = Counter()
    for each in pending:
        for resource, count in _by_label(each.pod):
            key = (each.pod.namespace, resource, each.reason)
            pods[key] += 1
            devices[key] += count
    return _counted(PODS, pods), _counted(DEVICES, devices)


def _counted(metric: Metric, counts: Counter[tuple[str, str, str]]) -> Family:
    return Family(
        metric,
        [
            metric.sample(count, **namespace_labels(namespace), resource=resource, reason=reason)
            for (namespace, resource, reason), count in sorted(counts.items())
        ],
    )


def _by_label(pod: Pod) -> list[tuple[str, int]]:
    """Devices by resource as a label value; two resource names may have the same."""
    devices: Counter[str] = Counter()
    for name, count in pod.requests:
        devices[resource_label(name)] += count
    return sorted(devices.items())


def _oldest(pending: Iterable[PendingPod]) -> list[Sample]:
    since: dict[tuple[str, str], float] = defaultdict(lambda: float("inf"))
    for each in pending:
        key = (each.pod.namespace, each.reason)
        since[key] = min(since[key], each.since)
    return [
        OLDEST.sample(at, **namespace_labels(namespace), reason=reason)
        for (namespace, reason), at in sorted(since.items())
    ]


def _since(each: PendingPod) -> Iterable[Sample]:
    pod = each.pod
    for resource, _ in _by_label(pod):
        workload = workload_labels(pod.workload, pod.workload_type)
        yield SINCE.sample(each.since, **labels_of(pod), resource=resource, **workload)


def _reason(each: PendingPod) -> Sample:
    pod = each.pod
    return REASON.sample(1, **labels_of(pod), **workload_labels(pod.workload, pod.workload_type), reason=each.reason)
