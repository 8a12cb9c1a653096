"""Writes the sample lines of histograms, which are the same in both text formats."""

from collections.abc import Iterator
from itertools import accumulate

from exporter.metric import HistogramFamily


def histogram_lines(family: HistogramFamily) -> bytes:
    """Write all histograms of a family, each in one piece, as OpenMetrics requires."""
    return "".join(_lines(family)).encode()


def _lines(family: HistogramFamily) -> Iterator[str]:
    name = family.metric.name
    bounds = [*(str(float(bound)) for bound in family.bounds), "+Inf"]
    for labels, found in family.series:
        inner = labels.text.removesuffix("}") + "," if labels.text else "{"
        for bound, count in zip(bounds, accumulate(found.counts), strict=True):
            yield f'{name}_bucket{inner}le="{bound}"}} {count}\n'
        yield f"{name}_count{labels.text} {sum(found.counts)}\n"
        yield f"{name}_sum{labels.text} {float(found.total)}\n"
