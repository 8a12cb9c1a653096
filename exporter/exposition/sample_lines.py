"""Writes the sample lines of a family, which are the same in both text formats, and leaves out what parsers reject."""

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from exporter.exposition.page import Piece, packed
from exporter.metric import Kind, LabelError, Metric, Sample, Value

SLICE = 4000
"""Samples that are written at a time, about 1 MB of text. A family with more is kept compressed."""
NOT_FINITE = "null"
"""What msgspec's JSON encoder writes for NaN and infinities."""


class SampleLines:
    """The lines of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._earlier: set[int] = set()
        """Hashes of the label texts of earlier slices: the texts themselves would be most of a large page."""
        self.dropped = 0
        """Samples left out so far: NaN, infinite, a negative counter, or labels that the family already had."""

    def pieces(self, samples: Iterable[Sample]) -> Iterator[Piece]:
        """Write all samples, slice by slice. Raises LabelError for labels that were made for another metric."""
        rest = iter(samples)
        this, following = list(islice(rest, SLICE)), list(islice(rest, SLICE))
        if not following:
            body = self._slice(this)
            if body:
                yield body
            return
        while this:
            body = self._slice(this, several=True)
            if body:
                yield packed(body)
            this, following = following, list(islice(rest, SLICE))

    def _slice(self, given: list[Sample], *, several: bool = False) -> bytes:
        """Write some samples; `several` tells whether the family has other slices."""
        self._check(given)
        samples = given
        if self._metric.kind is Kind.COUNTER and any(value < 0 for _, value in samples):
            # One negative counter makes parsers reject the whole exposition.
            samples = [sample for sample in samples if sample[1] >= 0]
        if several:
            samples = self._new(samples)
        lines = self._lines(samples) if samples else []
        self.dropped += len(given) - len(lines)
        return "".join(lines).encode()

    def _check(self, samples: list[Sample]) -> None:
        schema = self._metric.schema
        for labels, _ in samples:
            if labels.schema is not schema and labels.schema != schema:  # nearly always the same object
                raise LabelError(f"labels of another metric on {self._metric.name}: {labels.text}")

    def _new(self, samples: list[Sample]) -> list[Sample]:
        """Leave out the samples whose labels an earlier slice had."""
        hashes = [hash(labels.text) for labels, _ in samples]
        if not self._earlier.isdisjoint(hashes):
            samples = [each for each, hash_ in zip(samples, hashes, strict=True) if hash_ not in self._earlier]
        self._earlier.update(hashes)
        return samples

    def _lines(self, samples: list[Sample]) -> list[str]:
        name = self._metric.name
        labels = [labels.text for labels, _ in samples]
        numbers = _numbers([value for _, value in samples])
        lines = [f"{name}{text} {number}\n" for text, number in zip(labels, numbers.split(","), strict=True)]
        return _distinct(lines) if len(set(labels)) != len(labels) or NOT_FINITE in numbers else lines


def _numbers(values: list[Value]) -> str:
    """Write the values, separated by commas, each in the fewest digits that read back as the same number.

    msgspec's JSON encoder formats floats ten times faster than `repr`; it writes `null` for NaN and infinities.
    """
    return msgspec.json.encode(values)[1:-1].decode()


def _distinct(lines: list[str]) -> list[str]:
    """Drop the lines whose value is not finite, and all but the first line of each series."""
    numbers = [line for line in lines if not line.endswith(f" {NOT_FINITE}\n")]
    return list({line.rpartition(" ")[0]: line for line in reversed(numbers)}.values())[::-1]
