"""Renders metric families as Prometheus text 0.0.4 and OpenMetrics 1.0.

The two formats differ only in the lines before the samples, so the samples of a family are written once. The
exporter metrics are written by `prometheus_client` and appended in each format.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as ExporterFamily
from prometheus_client.exposition import generate_latest as text_of
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_of
from prometheus_client.registry import Collector

from exporter.exposition.exposition import Demand, Exposition
from exporter.exposition.histogram_lines import histogram_lines
from exporter.exposition.kept_pieces import KeptPieces
from exporter.exposition.page import Piece
from exporter.exposition.sample_lines import SampleLines
from exporter.metric import AnyFamily, ChunkedFamily, HistogramFamily, Kind, Metric


@dataclass(frozen=True, slots=True, eq=False)  # a registry finds a collector by its hash
class _FixedFamilies(Collector):
    """Exporter metrics as they were at one time."""

    families: tuple[ExporterFamily, ...]

    def collect(self) -> Iterable[ExporterFamily]:
        return self.families


@dataclass(frozen=True, slots=True)
class Formatted:
    """One collection with its samples formatted; nothing in it changes, so any thread may write either format."""

    bodies: tuple[tuple[Metric, tuple[Piece, ...]], ...]
    """The sample lines of each metric that has some."""
    exporter_metrics: CollectorRegistry
    dropped: int
    """Samples left out."""

    def text(self) -> list[Piece]:
        """Write the text format."""
        pieces = [piece for metric, body in self.bodies for piece in (_heads(metric)[0], *body)]
        return [*pieces, text_of(self.exporter_metrics)]

    def openmetrics(self) -> list[Piece]:
        """Write OpenMetrics. It ends with the exporter metrics, whose last line from the library is `# EOF`."""
        pieces = [piece for metric, body in self.bodies for piece in (_heads(metric)[1], *body)]
        exporter_metrics = openmetrics_of(self.exporter_metrics)  # type: ignore[no-untyped-call] # half typed library
        return [*pieces, exporter_metrics]


def render(
    families: Iterable[AnyFamily],
    exporter_metrics: CollectorRegistry,
    demand: Demand | None = None,
    kept: KeptPieces | None = None,
) -> Exposition:
    """Render one collection in the forms that `demand` names; others are made when they are asked for.

    Families without samples are left out; a metric name may appear only once. `kept` has what the rendering before
    wrote of chunks. Raises LabelError when a sample's labels were made for another metric.
    """
    formatted = formatted_samples(families, exporter_metrics, kept)
    return Exposition(formatted.text, formatted.openmetrics, formatted.dropped, demand)


def formatted_samples(
    families: Iterable[AnyFamily], exporter_metrics: CollectorRegistry, kept: KeptPieces | None = None
) -> Formatted:
    """Format the samples, and read the exporter metrics once: both formats show the same values."""
    kept = kept or KeptPieces()
    kept.begin()
    bodies: list[tuple[Metric, tuple[Piece, ...]]] = []
    dropped = 0
    for family in families:
        body, left_out = _body(family, kept)
        dropped += left_out
        if body:
            bodies.append((family.metric, body))
    fixed = CollectorRegistry(auto_describe=False)
    fixed.register(_FixedFamilies(tuple(exporter_metrics.collect())))
    return Formatted(tuple(bodies), fixed, dropped)


def _body(family: AnyFamily, kept: KeptPieces) -> tuple[tuple[Piece, ...], int]:
    """Write the lines of a family; returns them, and the number of samples left out."""
    if isinstance(family, ChunkedFamily):
        written = list(kept.of(family))
        return tuple(piece for piece, _ in written if piece), sum(dropped for _, dropped in written)
    if isinstance(family, HistogramFamily):
        return (histogram_lines(family),) if family.series else (), 0
    lines = SampleLines(family.metric)
    return tuple(lines.pieces(family.samples)), lines.dropped


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
