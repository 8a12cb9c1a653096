"""Limits how many series each metric of the watcher has, and counts what is left out. No I/O, no state.

What tenants write decides how many there are: namespaces, workloads, models that selectors demand, queues. Where there
are too many, every namespace keeps its largest or oldest before any other one keeps its next, so that one namespace
never hides the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from exporter.cluster.config import SeriesLimits
from exporter.metric import AnyFamily, ChunkedFamily, Family, HistogramFamily, Kind, Labels, LargeFamily, Metric, metric

LEFT_OUT = metric(
    "gpugauge_series_left_out",
    Kind.GAUGE,
    "Series of this metric that are left out because there are too many; a pod or node counts under its info metric.",
    "metric",
)
METRICS = (LEFT_OUT,)
_NAMESPACE = "gpu_namespace"
_POD = "gpu_pod"
T = TypeVar("T")


def fairest(
    given: Sequence[T], most: int, namespace: Callable[[T], str], first: Callable[[T], tuple[float, object]]
) -> list[T]:
    """Keep so many at most, in the order given: of each namespace those that come first, in turn with the others."""
    if len(given) <= most:
        return list(given)
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, int]] = []
    for position, each in sorted(enumerate(given), key=lambda pair: first(pair[1])):
        rank = seen[namespace(each)]
        seen[namespace(each)] += 1
        ranked.append((rank, len(ranked), position))
    kept = sorted(position for _, _, position in sorted(ranked)[:most])
    return [given[position] for position in kept]


def most_first(given: list[T], most: int, first: Callable[[T], tuple[float, str]]) -> list[T]:
    """Keep so many at most, in the order given: those that come first."""
    return fairest(given, most, lambda _: "", first)


def limited(family: AnyFamily, limits: SeriesLimits) -> AnyFamily:
    """Return the family with as many samples as are allowed. Large families are limited where they are made."""
    if isinstance(family, LargeFamily | ChunkedFamily):
        return family
    most = limits.waits if isinstance(family, HistogramFamily) else _most(family.metric, limits)
    number = len(family.series if isinstance(family, HistogramFamily) else family.samples)
    if most is None or number <= most:
        return family
    left_out = family.left_out + number - most
    if isinstance(family, HistogramFamily):
        series = fairest(
            family.series, most, lambda each: _namespace(each[0]), lambda each: (-sum(each[1].counts), each[0].values)
        )
        return replace(family, series=series, left_out=left_out)
    oldest = family.metric.name.endswith("_timestamp_seconds")
    samples = fairest(
        family.samples,
        most,
        lambda each: _namespace(each[0]),
        lambda each: (each[1] if oldest else -each[1], each[0].values),
    )
    return replace(family, samples=samples, left_out=left_out)


def left_out_family(families: Iterable[AnyFamily]) -> Family:
    """How many series of each metric are left out, where some are."""
    return Family(LEFT_OUT, [LEFT_OUT.ordered(each.left_out, each.metric.name) for each in families if each.left_out])


def _most(metric: Metric, limits: SeriesLimits) -> int | None:
    """How many series the metric may have; None where it has few by itself."""
    names = metric.schema.names
    if _POD in names:
        return limits.pods
    if _NAMESPACE in names:
        return limits.of_namespaces
    return limits.nodes if "node" in names else None


def _namespace(labels: Labels) -> str:
    return dict(labels.pairs).get(_NAMESPACE, "")
