"""Metrics of GPU pods: identity, start, phase and the overrides that their owners set, and how many failed."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

from exporter.cluster.config import SeriesLimits
from exporter.cluster.kubernetes.objects.overrides import (
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
from exporter.cluster.kubernetes.objects.records import Overrides, Pod
from exporter.cluster.metrics.limits import fairest
from exporter.cluster.scheduling.keeping.pod_chunks import PodChunk, by_name, chunks_of
from exporter.cluster.scheduling.keeping.waits import BOUNDS
from exporter.cluster.view import ClusterView
from exporter.identity_labels import NAMESPACE, POD, WORKLOAD, namespace_labels, pod_labels, pod_values
from exporter.metric import (
    Chunk,
    ChunkedFamily,
    Distribution,
    Family,
    HistogramFamily,
    Kind,
    LargeFamily,
    Sample,
    metric,
)

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
FAILED_WORKLOADS = metric(
    "gpugauge_node_failed_workloads",
    Kind.GAUGE,
    "Workloads of which a GPU pod ended with an error on this node, or was lost with it, within seven days.",
    "node",
)
MALFORMED = metric(
    "gpugauge_overrides_malformed",
    Kind.GAUGE,
    "Annotations and labels of gpugauge that are ignored because their values cannot be understood.",
    "key",
)
_NONE = Overrides()
METRICS = (INFO, START, PHASE, LOW_UTILIZATION_THRESHOLD, POD_EXEMPTION, FAILURES, FAILED_WORKLOADS, WAIT, MALFORMED)


def pod_families(view: ClusterView, most: int = SeriesLimits().pods) -> list[LargeFamily | ChunkedFamily]:
    """The families of single pods, of the oldest where there are more than `most`; none while they are not known."""
    if view.pods is None:
        return []
    chunks, left_out = view.chunks(), max(0, len(view.pods) - most)
    if left_out:
        pods = fairest(by_name(view.pods), most, lambda pod: pod.namespace, lambda pod: (pod.created, pod.uid))
        chunks = chunks_of(pods, view.namespaces)
    return [
        ChunkedFamily(INFO, [Chunk(each.stamps.info, partial(_infos, each)) for each in chunks], left_out),
        ChunkedFamily(START, [Chunk(each.stamps.start, partial(_starts, each)) for each in chunks]),
        ChunkedFamily(PHASE, [Chunk(each.stamps.phase, partial(_phases, each)) for each in chunks]),
        LargeFamily(LOW_UTILIZATION_THRESHOLD, lambda: _thresholds(chunks)),
        LargeFamily(POD_EXEMPTION, lambda: _exemptions(chunks, view.now)),
    ]


def labels_of(pod: Pod) -> dict[str, str]:
    """The labels that name the pod."""
    return pod_labels(pod.namespace, pod.name, pod.uid)


def failure_family(view: ClusterView) -> Family:
    """How many pods ran and failed since the watcher started."""
    return Family(FAILURES, [FAILURES.ordered(count, *key) for key, count in sorted(view.failures.items())])


def failed_workloads_family(view: ClusterView) -> Family:
    """How many workloads failed lately on each node that still has GPUs; none on the others."""
    nodes = {node.name for node in view.gpu_nodes()}
    found = ((node, count) for node, count in sorted(view.failed_workloads.items()) if node in nodes)
    return Family(FAILED_WORKLOADS, [FAILED_WORKLOADS.sample(count, node=node) for node, count in found])


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


def _infos(chunk: PodChunk) -> Iterator[Sample]:
    namespaces = dict(zip(chunk.names, chunk.overrides, strict=True)) if chunk.overrides is not None else None
    for pod in chunk.pods:
        workload = (pod.workload, pod.workload_type, _workload_class(pod, namespaces))
        yield INFO.ordered(1, *_values(pod), pod.node, *workload, pod.priority_class)


def _starts(chunk: PodChunk) -> Iterator[Sample]:
    return (START.ordered(pod.started, *_values(pod)) for pod in chunk.pods if pod.started is not None)


def _phases(chunk: PodChunk) -> Iterator[Sample]:
    return (PHASE.ordered(1, *_values(pod), pod.phase) for pod in chunk.pods if pod.phase)


def _values(pod: Pod) -> tuple[str, str, str, str, str]:
    return pod_values(pod.namespace, pod.name, pod.uid)


def _workload_class(pod: Pod, namespaces: Mapping[str, Overrides | None] | None) -> str:
    """The workload class; empty where the pod sets none and the namespaces are not known."""
    if namespaces is not None:
        return workload_class(pod, namespaces[pod.namespace] or _NONE)
    return workload_class(pod, _NONE) if pod.overrides.workload_class else ""


def _thresholds(chunks: Iterable[PodChunk]) -> Iterator[Sample]:
    for chunk in chunks:
        own = (None if each is None else threshold(each.threshold) for each in chunk.overrides or ())
        of_namespaces = {name: ratio for name, ratio in zip(chunk.names, own, strict=False) if ratio is not None}
        for pod in chunk.pods if of_namespaces else chunk.with_overrides:
            ratio = threshold(pod.overrides.threshold) if pod.overrides.threshold else None
            if ratio is None:
                ratio = of_namespaces.get(pod.namespace)
            if ratio is not None:
                yield LOW_UTILIZATION_THRESHOLD.ordered(ratio, *_values(pod))


def _exemptions(chunks: Iterable[PodChunk], now: float) -> Iterator[Sample]:
    for pod in chain.from_iterable(chunk.with_overrides for chunk in chunks):
        exemption = pod_exemption(pod.overrides.exemption, now) if pod.overrides.exemption else None
        if exemption is not None:
            yield POD_EXEMPTION.ordered(1, *_values(pod), ALERT, exemption.until)
