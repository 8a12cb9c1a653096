"""Metrics of pending GPU pods: how many there are, since when, and for which reason."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.metrics.limits import fairest
from exporter.cluster.metrics.pods import labels_of
from exporter.cluster.scheduling.keeping.history import Workload, workload_of
from exporter.cluster.scheduling.nodes.node_selection import demanded_model
from exporter.cluster.scheduling.reasons.pending_pods import PendingPod, unknown_texts
from exporter.cluster.view import ClusterView
from exporter.gpu_names import resource_label
from exporter.identity_labels import NAMESPACE, POD, WORKLOAD, namespace_labels, workload_labels
from exporter.metric import Family, Kind, Metric, Sample, metric

PODS = metric(
    "gpugauge_pending_pods",
    Kind.GAUGE,
    "GPU pods that are not running yet; `model` is the one that their selectors demand, else `any`.",
    *NAMESPACE,
    "resource",
    "model",
    "reason",
)
DEVICES = metric(
    "gpugauge_pending_devices",
    Kind.GAUGE,
    "Devices that GPU pods which are not running yet ask for.",
    *NAMESPACE,
    "resource",
    "model",
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
    "Since when this GPU pod could have been scheduled, as seen by this watcher; the oldest pods of a workload only.",
    *POD,
    "resource",
    *WORKLOAD,
)
REASON = metric(
    "gpugauge_pending_pod_reason",
    Kind.GAUGE,
    "Constant 1 with the current reason why this GPU pod is not running; the oldest pods of a workload only.",
    *POD,
    *WORKLOAD,
    "reason",
)
UNTRACKED = metric(
    "gpugauge_pending_workloads_untracked",
    Kind.GAUGE,
    "Workloads of which no pod has series of its own, although it is pending long enough: there are too many.",
)
WORKLOAD_SINCE = metric(
    "gpugauge_pending_workload_since_timestamp_seconds",
    Kind.GAUGE,
    "Since when this workload is pending: since it last ran, or since its oldest pending pod could be scheduled; "
    "`model` is the one that its selectors demand, else `any`.",
    *NAMESPACE,
    *WORKLOAD,
    "resource",
    "model",
)
ADMISSION_FAILURES = metric(
    "gpugauge_pod_admission_failures_total",
    Kind.COUNTER,
    "GPU pods that a kubelet rejected.",
    *NAMESPACE,
    "node",
    "workload",
)
PendingKey = tuple[str, str, str, str]
"""(namespace, resource, model, reason)."""
UNKNOWN = metric(
    "gpugauge_scheduler_messages_unknown",
    Kind.GAUGE,
    "Pending GPU pods whose scheduler names a cause in words that are not known; the log has the words.",
)
METRICS = (PODS, DEVICES, OLDEST, SINCE, REASON, UNTRACKED, WORKLOAD_SINCE, ADMISSION_FAILURES, UNKNOWN)


def pending_families(view: ClusterView, config: ClusterConfig) -> list[Family]:
    """The families; none while the pods are not known.

    Pods get series of their own when they are pending for a while, the oldest ones of the workloads pending longest.
    """
    if view.pods is None:
        return []
    own, others = _tracked(view, config)
    return [
        *_counts(view.pending),
        Family(OLDEST, _oldest(view.pending)),
        Family(SINCE, [sample for each in own for sample in _since(each)]),
        Family(REASON, [_reason(each) for each in own]),
        Family(UNTRACKED, [UNTRACKED.sample(others)]),
        _workloads_since(view, config),
        Family(ADMISSION_FAILURES, _admission_failures(view)),
        Family(UNKNOWN, [UNKNOWN.sample(len({pod.uid for pod, _ in unknown_texts(view.pods, view.gpus)}))]),
    ]


def _tracked(view: ClusterView, config: ClusterConfig) -> tuple[list[PendingPod], int]:
    """The pods that get series of their own, and the number of workloads that get none although pending long enough."""
    pods: dict[Workload, list[PendingPod]] = defaultdict(list)
    for each in view.pending:
        if each.pod.schedulable_since is not None and each.since < view.now - config.tracked_after:
            pods[workload_of(each.pod)].append(each)
    longest = sorted(pods, key=lambda workload: (view.pending_since.get(workload, view.now), workload))
    tracked = longest[: config.tracked_workloads]
    own = [
        each
        for workload in tracked
        for each in sorted(pods[workload], key=lambda each: (each.since, each.pod.uid))[: config.tracked_pods]
    ]
    return own, len(longest) - len(tracked)


def _workloads_since(view: ClusterView, config: ClusterConfig) -> Family:
    """One for each resource and model that pending pods ask for, of the workloads that are pending longest."""
    wanted: dict[Workload, set[tuple[str, str]]] = defaultdict(set)
    for each in view.pending:
        model = demanded_model(each.pod.constraints)
        wanted[workload_of(each.pod)].update((resource, model) for resource, _ in _by_label(each.pod))
    long = sorted(
        (each for each in view.pending_since.items() if each[1] < view.now - config.tracked_after),
        key=lambda each: (each[1], each[0]),
    )
    # Before samples are made: a hundred thousand workloads take too much memory as samples.
    kept = fairest(long, config.limits.of_namespaces, lambda each: each[0][0], lambda each: (each[1], each[0]))
    samples = [
        WORKLOAD_SINCE.sample(
            since, **namespace_labels(key[0]), **workload_labels(*key[1:]), resource=resource, model=model
        )
        for key, since in kept
        for resource, model in sorted(wanted[key])
    ]
    return Family(WORKLOAD_SINCE, samples, left_out=len(long) - len(kept))


def _admission_failures(view: ClusterView) -> list[Sample]:
    return [
        ADMISSION_FAILURES.sample(count, **namespace_labels(namespace), node=node, workload=workload)
        for (namespace, node, workload), count in sorted(view.rejections.items())
    ]


def _counts(pending: Iterable[PendingPod]) -> tuple[Family, Family]:
    pods: Counter[PendingKey] = Counter()
    devices: Counter[PendingKey] = Counter()
    for each in pending:
        model = demanded_model(each.pod.constraints)
        for resource, count in _by_label(each.pod):
            key = (each.pod.namespace, resource, model, str(each.reason))
            pods[key] += 1
            devices[key] += count
    return _counted(PODS, pods), _counted(DEVICES, devices)


def _counted(metric: Metric, counts: Counter[PendingKey]) -> Family:
    return Family(
        metric,
        [
            metric.sample(count, **namespace_labels(namespace), resource=resource, model=model, reason=reason)
            for (namespace, resource, model, reason), count in sorted(counts.items())
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
