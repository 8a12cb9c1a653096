"""Renders metric families as Prometheus text 0.0.4 and OpenMetrics 1.0.

The two formats differ only in the lines before the samples, so the samples of a family are formatted once. The
exporter metrics are written by `prometheus_client` and appended in each format.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as ExporterFamily
from prometheus_client.exposition import generate_latest as text_of
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_of
from prometheus_client.registry import Collector

from exporter.exposition.exposition import Demand, Exposition
from exporter.metric import Family, Kind, Metric, Value

NOT_FINITE = "null"
"""What msgspec's JSON encoder writes for NaN and infinities."""


@dataclass(frozen=True, slots=True, eq=False)  # a registry finds a collector by its hash
class _FixedFamilies(Collector):
    """Exporter metrics as they were at one time."""

    families: tuple[ExporterFamily, ...]

    def collect(self) -> Iterable[ExporterFamily]:
        return self.families


@dataclass(frozen=True, slots=True)
class Formatted:
    """One collection with its samples formatted; nothing in it changes, so any thread may write either format."""

    bodies: tuple[tuple[Metric, bytes], ...]
    """The sample lines of each metric that has some."""
    exporter_metrics: CollectorRegistry
    dropped: int
    """Samples left out."""

    def text(self) -> bytes:
        """Write the text format."""
        parts = [part for metric, body in self.bodies for part in (_heads(metric)[0], body)]
        return b"".join((*parts, text_of(self.exporter_metrics)))

    def openmetrics(self) -> bytes:
        """Write OpenMetrics. It ends with the exporter metrics, whose last line from the library is `# EOF`."""
        parts = [part for metric, body in self.bodies for part in (_heads(metric)[1], body)]
        exporter_metrics = openmetrics_of(self.exporter_metrics)  # type: ignore[no-untyped-call] # half typed library
        return b"".join((*parts, exporter_metrics))


def render(families: Iterable[Family], exporter_metrics: CollectorRegistry, demand: Demand | None = None) -> Exposition:
    """Render one collection in the text format and in the forms that `demand` names.

    Families without samples are left out; a metric name may appear only once.
    """
    formatted = formatted_samples(families, exporter_metrics)
    return Exposition(formatted.text(), formatted.openmetrics, formatted.dropped, demand)


def formatted_samples(families: Iterable[Family], exporter_metrics: CollectorRegistry) -> Formatted:
    """Format the samples, and read the exporter metrics once: both formats show the same values."""
    bodies: list[tuple[Metric, bytes]] = []
    dropped = 0
    for family in families:
        body, left_out = _sample_lines(family)
        dropped += left_out
        if body:
            bodies.append((family.metric, body))
    fixed = CollectorRegistry(auto_describe=False)
    fixed.register(_FixedFamilies(tuple(exporter_metrics.collect())))
    return Formatted(tuple(bodies), fixed, dropped)


@lru_cache(maxsize=1024)
def _heads(metric: Metric) -> tuple[bytes, bytes]:
    """Write the HELP and TYPE lines in each format; cached, because every collection has the same metrics."""
    return _text_head(metric).encode(), _openmetrics_head(metric).encode()


def _help(metric: Metric) -> str:
    return metric.help.replace("\\", "\\\\").replace("\n", "\\n")


def _text_head(metric: Metric) -> str:
    return f"# HELP {metric.name} {_help(metric)}\n# TYPE {metric.name} {metric.kind}\n"


def _openmetrics_head(metric: Metric) -> str:
    """Write the HELP and TYPE lines of OpenMetrics.

    They name a counter without its suffix `_total`; a counter without that suffix can only be of type `unknown`.
    """
    name, kind = metric.name, str(metric.kind)
    if metric.kind is Kind.UNTYPED:
        kind = "unknown"
    elif metric.kind is Kind.COUNTER:
        name = metric.name.removesuffix("_total")
        kind = "counter" if name != metric.name else "unknown"
    help_ = _help(metric).replace('"', '\\"')
    return f"# HELP {name} {help_}\n# TYPE {name} {kind}\n"


def _sample_lines(family: Family) -> tuple[bytes, int]:
    """Write the sample lines of one family, and count the samples dropped because parsers would reject them."""
    name, samples = family.metric.name, family.samples
    if family.metric.kind is Kind.COUNTER and any(value < 0 for _, value in samples):
        # One negative counter makes parsers reject the whole exposition.
        samples = [sample for sample in samples if sample[1] >= 0]
    if not samples:
        return b"", len(family.samples)
    labels = [labels.text for labels, _ in samples]
    numbers = _numbers([value for _, value in samples])
    lines = [f"{name}{text} {number}\n" for text, number in zip(labels, numbers.split(","), strict=True)]
    if len(set(labels)) != len(labels) or NOT_FINITE in numbers:
        lines = _distinct(lines)
    return "".join(lines).encode(), len(family.samples) - len(lines)


def _numbers(values: list[Value]) -> str:
    """Write the values, separated by commas, each in the fewest digits that read back as the same number.

    msgspec's JSON encoder formats floats ten times faster than `repr`; it writes `null` for NaN and infinities.
    """
    return msgspec.json.encode(values)[1:-1].decode()


def _distinct(lines: list[str]) -> list[str]:
    """Drop the lines whose value is not finite, and all but the first line of each series."""
    numbers = [line for line in lines if not line.endswith(f" {NOT_FINITE}\n")]
    return list({line.rpartition(" ")[0]: line for line in reversed(numbers)}.values())[::-1]
