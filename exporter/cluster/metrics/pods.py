"""Metrics of GPU pods: identity, start, phase and the overrides that their owners set, and how many failed."""

from collections.abc import Iterator

from exporter.cluster.config import SeriesLimits
from exporter.cluster.kubernetes.overrides import (
    ALERT,
    EXEMPTION,
    MAINTENANCE,
    THRESHOLD,
    WORKLOAD_CLASS,
    MalformedOverride,
    pod_exemption,
    threshold,
    workload_class,
)
from exporter.cluster.kubernetes.records import Overrides, Pod
from exporter.cluster.metrics.limits import fairest
from exporter.cluster.scheduling.waits import BOUNDS
from exporter.cluster.view import ClusterView
from exporter.identity_labels import NAMESPACE, POD, WORKLOAD, namespace_labels, pod_labels, pod_values
from exporter.metric import Distribution, Family, HistogramFamily, Kind, LargeFamily, Sample, metric

INFO = metric(
    "gpugauge_gpu_pod_info",
    Kind.GAUGE,
    "Constant 1; one per GPU pod that is not finished.",
    *POD,
    "node",
    *WORKLOAD,
    "workload_class",
    "priority_class",
)
START = metric(
    "gpugauge_gpu_pod_start_timestamp_seconds",
    Kind.GAUGE,
    "When the kubelet accepted the pod, before it pulled any image.",
    *POD,
)
PHASE = metric("gpugauge_gpu_pod_phase", Kind.GAUGE, "The pod's current phase.", *POD, "phase")
LOW_UTILIZATION_THRESHOLD = metric(
    "gpugauge_pod_low_utilization_threshold_ratio",
    Kind.GAUGE,
    "Utilization below which this pod counts as low, where its owners have set an override.",
    *POD,
)
POD_EXEMPTION = metric(
    "gpugauge_pod_alert_exemption",
    Kind.GAUGE,
    "The pod is exempt from this alert, through the day `until` (UTC).",
    *POD,
    "alert",
    "until",
)
WAIT = metric(
    "gpugauge_pod_scheduling_wait_seconds",
    Kind.HISTOGRAM,
    "How long GPU pods waited from when they could be scheduled until they were bound; `size` is in devices.",
    *NAMESPACE,
    "resource",
    "size",
)
FAILURES = metric(
    "gpugauge_gpu_pod_failures_total",
    Kind.COUNTER,
    "GPU pods that ran and failed, by how they ended.",
    "node",
    "reason",
)
MALFORMED = metric(
    "gpugauge_overrides_malformed",
    Kind.GAUGE,
    "Annotations and labels of gpugauge that are ignored because their values cannot be understood.",
    "key",
)
_NONE = Overrides()
METRICS = (INFO, START, PHASE, LOW_UTILIZATION_THRESHOLD, POD_EXEMPTION, FAILURES, WAIT, MALFORMED)


def pod_families(view: ClusterView, most: int = SeriesLimits().pods) -> list[LargeFamily]:
    """The families of single pods, of the oldest where there are more than `most`; none while they are not known."""
    if view.pods is None:
        return []
    every = sorted(view.pods, key=lambda pod: (pod.namespace, pod.name))
    pods = fairest(every, most, lambda pod: pod.namespace, lambda pod: (pod.created, pod.uid))
    return [
        LargeFamily(INFO, lambda: _infos(pods, view), left_out=len(every) - len(pods)),
        LargeFamily(
            START, lambda: (START.ordered(pod.started, *_values(pod)) for pod in pods if pod.started is not None)
        ),
        LargeFamily(PHASE, lambda: (PHASE.ordered(1, *_values(pod), pod.phase) for pod in pods if pod.phase)),
        LargeFamily(LOW_UTILIZATION_THRESHOLD, lambda: _thresholds(pods, view)),
        LargeFamily(POD_EXEMPTION, lambda: _exemptions(pods, view)),
    ]


def labels_of(pod: Pod) -> dict[str, str]:
    """The labels that name the pod."""
    return pod_labels(pod.namespace, pod.name, pod.uid)


def failure_family(view: ClusterView) -> Family:
    """How many pods ran and failed since the watcher started."""
    return Family(FAILURES, [FAILURES.ordered(count, *key) for key, count in sorted(view.failures.items())])


def wait_family(view: ClusterView) -> HistogramFamily:
    """How long the pods waited that were bound since the watcher started."""
    series = []
    for (namespace, resource, size), waits in sorted(view.waits.items()):
        labels = WAIT.labels(**namespace_labels(namespace), resource=resource, size=size)
        series.append((labels, Distribution(tuple(waits.counts), waits.total)))
    return HistogramFamily(WAIT, BOUNDS, series)


def malformed_family(found: list[MalformedOverride]) -> Family:
    """How many values are ignored now, by key; 0 is exposed too, so that a rule can see the change."""
    counts = {WORKLOAD_CLASS: 0, EXEMPTION: 0, THRESHOLD: 0, MAINTENANCE: 0}
    for each in found:
        counts[each.key] += 1
    return Family(MALFORMED, [MALFORMED.sample(count, key=key) for key, count in counts.items()])


def _infos(pods: list[Pod], view: ClusterView) -> Iterator[Sample]:
    for pod in pods:
        workload = (pod.workload, pod.workload_type, _workload_class(pod, view))
        yield INFO.ordered(1, *_values(pod), pod.node, *workload, pod.priority_class)


def _values(pod: Pod) -> tuple[str, str, str, str, str]:
    return pod_values(pod.namespace, pod.name, pod.uid)


def _workload_class(pod: Pod, view: ClusterView) -> str:
    """The workload class; empty where the pod sets none and the namespaces are not known."""
    if view.namespaces is not None:
        return workload_class(pod, view.namespaces.get(pod.namespace, _NONE))
    return workload_class(pod, _NONE) if pod.overrides.workload_class else ""


def _thresholds(pods: list[Pod], view: ClusterView) -> Iterator[Sample]:
    of_namespaces = {name: threshold(overrides.threshold) for name, overrides in (view.namespaces or {}).items()}
    for pod in pods:
        ratio = threshold(pod.overrides.threshold) if pod.overrides.threshold else None
        if ratio is None:
            ratio = of_namespaces.get(pod.namespace)
        if ratio is not None:
            yield LOW_UTILIZATION_THRESHOLD.ordered(ratio, *_values(pod))


def _exemptions(pods: list[Pod], view: ClusterView) -> Iterator[Sample]:
    for pod in pods:
        exemption = pod_exemption(pod.overrides.exemption, view.now) if pod.overrides.exemption else None
        if exemption is not None:
            yield POD_EXEMPTION.ordered(1, *_values(pod), ALERT, exemption.until)
