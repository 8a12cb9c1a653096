"""Families to bytes: Prometheus text 0.0.4 and OpenMetrics 1.0, plain and gzip, rendered once per pass.

The two formats differ only in their heads, so the samples of a family are formatted once. Our own metrics about
the exporter come from `prometheus_client` and are appended in each format.
"""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest as own_text
from prometheus_client.openmetrics.exposition import generate_latest as own_openmetrics

from exporter.metric import Family, Kind, Metric

GZIP_LEVEL = 1  # measured on our pages: level 6 saves a tenth of the bytes for five times the time


@dataclass(frozen=True, slots=True)
class Page:
    """One pass in every form a scrape may ask for."""

    text: bytes
    text_gzip: bytes
    openmetrics: bytes
    openmetrics_gzip: bytes
    dropped: int = 0
    """Samples left out because their value was no number (or a negative count), or their labels were on the page already."""


def _help(metric: Metric) -> str:
    return metric.help.replace("\\", "\\\\").replace("\n", "\\n")


def _text_head(metric: Metric) -> bytes:
    return f"# HELP {metric.name} {_help(metric)}\n# TYPE {metric.name} {metric.kind}\n".encode()


def _openmetrics_head(metric: Metric) -> bytes:
    """A counter is named without `_total` in its head; one that has no such suffix can only be `unknown`."""
    name, kind = metric.name, str(metric.kind)
    if metric.kind is Kind.UNTYPED:
        kind = "unknown"
    elif metric.kind is Kind.COUNTER:
        name = metric.name.removesuffix("_total")
        kind = "counter" if name != metric.name else "unknown"
    help_ = _help(metric).replace('"', '\\"')
    return f"# HELP {name} {help_}\n# TYPE {name} {kind}\n".encode()


def _lines(family: Family) -> list[str]:
    """The sample lines of one family; what would break the page is left out.

    `nan` and `inf` are the only number texts that end in those letters.
    """
    name = family.metric.name
    samples = family.samples
    if family.metric.kind is Kind.COUNTER and any(value < 0 for _, value in samples):
        samples = [sample for sample in samples if sample[1] >= 0]  # parsers refuse the whole page for one of them
    lines = [f"{name}{labels.text} {value}\n" for labels, value in samples]
    if any(line[-2] in "nf" for line in lines):
        lines = [line for line in lines if line[-2] not in "nf"]
    if len({labels.text for labels, _ in samples}) != len(samples):
        lines = list({line.rpartition(" ")[0]: line for line in reversed(lines)}.values())[::-1]
    return lines


def render(families: Iterable[Family], own: CollectorRegistry) -> Page:
    """The page of a pass. Families without samples are left out; a name may appear only once."""
    text: list[bytes] = []
    openmetrics: list[bytes] = []
    dropped = 0
    for family in families:
        lines = _lines(family)
        dropped += len(family.samples) - len(lines)
        if lines:
            body = "".join(lines).encode()
            text += (_text_head(family.metric), body)
            openmetrics += (_openmetrics_head(family.metric), body)
    text.append(own_text(own))
    openmetrics.append(own_openmetrics(own))  # type: ignore[no-untyped-call] # the library is half typed
    return _page(b"".join(text), b"".join(openmetrics), dropped)


def _page(text: bytes, openmetrics: bytes, dropped: int) -> Page:
    return Page(
        text=text,
        text_gzip=gzip.compress(text, GZIP_LEVEL, mtime=0),
        openmetrics=openmetrics,
        openmetrics_gzip=gzip.compress(openmetrics, GZIP_LEVEL, mtime=0),
        dropped=dropped,
    )
