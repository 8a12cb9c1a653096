"""Metrics of pod metadata itself: how current it is, and what of it is left out. No I/O."""

from collections.abc import Iterable, Iterator

from exporter.metric import Family, Kind, Metric, Sample, metric
from exporter.node.pods.exposed_labels import ExposedLabels
from exporter.node.pods.pod import NodePod
from exporter.node.service_account.watched_kind import ReflectorView

LAST_SYNC = metric(
    "gpugauge_pod_metadata_last_sync_timestamp_seconds",
    Kind.GAUGE,
    "When the pods of this node were last confirmed, in seconds since the epoch; absent where they are not read.",
    "node",
)
MALFORMED = metric(
    "gpugauge_pod_metadata_malformed_total",
    Kind.COUNTER,
    "Pods of this node that could not be decoded and are left out; a pod counts each time.",
    "node",
)
LIMITED = metric(
    "gpugauge_pod_labels_limited",
    Kind.GAUGE,
    "Labels of pods that are left out because a pod has too many, or shortened because a value is too long.",
    "limit",
    "node",
)
METRICS = (LAST_SYNC, MALFORMED, LIMITED)


def metadata_families(view: ReflectorView[NodePod], labels: Iterable[ExposedLabels], node: str) -> tuple[Family, ...]:
    """Make the families that have a sample. `labels` are those of the pods whose labels are exposed."""
    found: tuple[tuple[Metric, list[Sample]], ...] = (
        (LAST_SYNC, [] if view.synced_at is None else [LAST_SYNC.sample(view.synced_at, node=node)]),
        (MALFORMED, [MALFORMED.sample(view.malformed, node=node)]),
        (LIMITED, list(_limited(tuple(labels), node))),
    )
    return tuple(Family(metric, samples) for metric, samples in found if samples)


def _limited(labels: tuple[ExposedLabels, ...], node: str) -> Iterator[Sample]:
    counts = {"left_out": sum(each.left_out for each in labels), "shortened": sum(each.shortened for each in labels)}
    for limit, count in counts.items():
        if count:
            yield LIMITED.sample(count, limit=limit, node=node)
