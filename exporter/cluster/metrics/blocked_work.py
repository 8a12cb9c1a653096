"""Metrics of GPU work that has no pods yet: held by a queue, or rejected by a quota or the API server."""

from collections import Counter

from exporter.cluster.scheduling.reasons.blocked_work import BlockedWork, blocked_work
from exporter.cluster.view import ClusterView
from exporter.gpu_names import resource_label
from exporter.identity_labels import NAMESPACE, namespace_labels
from exporter.metric import Family, Kind, Metric, metric

_LABELS = (*NAMESPACE, "queue", "resource", "reason")
WORKLOADS = metric("gpugauge_pending_workloads", Kind.GAUGE, "GPU work that has no pods yet, or too few.", *_LABELS)
DEVICES = metric(
    "gpugauge_pending_workload_devices",
    Kind.GAUGE,
    "Devices that the missing pods of this work would ask for.",
    *_LABELS,
)
METRICS = (WORKLOADS, DEVICES)

WorkKey = tuple[str, str, str, str]


def blocked_work_families(view: ClusterView) -> list[Family]:
    """The families; none while no kind of controller is known."""
    found = blocked_work(view.controllers, view.events, view.now)
    workloads: Counter[WorkKey] = Counter()
    devices: Counter[WorkKey] = Counter()
    for each in found:
        for resource, count in _by_label(each).items():
            key = (each.namespace, each.queue, resource, str(each.reason))
            workloads[key] += 1
            devices[key] += count
    return [_family(WORKLOADS, workloads), _family(DEVICES, devices)]


def _by_label(work: BlockedWork) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, count in work.requests:
        counts[resource_label(name)] += count
    return counts


def _family(metric: Metric, counts: Counter[WorkKey]) -> Family:
    return Family(
        metric,
        [
            metric.sample(count, **namespace_labels(namespace), queue=queue, resource=resource, reason=reason)
            for (namespace, queue, resource, reason), count in sorted(counts.items())
        ],
    )
