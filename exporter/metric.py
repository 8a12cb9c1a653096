"""Metrics, labels and metric families: what the programs build and `exporter/exposition/render.py` turns into text.

A metric declares its label names once; labels with a missing or an unknown name cannot be made, and a family takes
only labels that were made for its metric. The text of labels is formatted once, when the device, container or workload
that they describe is first seen, and shared by all its series, so that a collection formats only values.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

import msgspec
from msgspec.structs import force_setattr

Value = int | float
LabelPairs = tuple[tuple[str, str], ...]
"""Label names and values in the order of the exposition."""


class LabelError(ValueError):
    """Labels do not fit the names that their metric declares."""


class Kind(StrEnum):
    """Prometheus metric types that our own renderer writes."""

    GAUGE = "gauge"
    COUNTER = "counter"
    UNTYPED = "untyped"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class LabelSchema:
    """The label names of a metric. Names in `optional` may be missing from a series; all others must be there."""

    names: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    _patterns: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By combinations of names that were found to fit: checked once, because every collection uses the same few."""

    def pattern(self, names: tuple[str, ...]) -> str:
        """Return the text of labels with these names, with `%s` for each value.

        Raises LabelError unless the names are declared and every required one is among them.
        """
        found = self._patterns.get(names)
        return self._checked(names) if found is None else found

    def _checked(self, names: tuple[str, ...]) -> str:
        unknown = set(names) - set(self.names)
        missing = set(self.names) - self.optional - set(names)
        if unknown or missing:
            raise LabelError(f"unknown labels {sorted(unknown)}, missing labels {sorted(missing)}")
        inner = ",".join([f'{name}="%s"' for name in names])
        return self._patterns.setdefault(names, f"{{{inner}}}" if inner else "")


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The labels of one series, in the order of the exposition, and their text. Raises LabelError.

    Python's garbage collector need not look at the labels of a hundred thousand series: they refer to strings only.
    """

    schema: LabelSchema
    names: tuple[str, ...]
    values: tuple[str, ...]
    text: str = ""
    """`{name="value",…}` as both formats write it; empty without labels. Made from names and values."""

    def __post_init__(self) -> None:
        pattern, values = self.schema.pattern(self.names), self.values
        text = pattern % values
        if "\\" in text or "\n" in text or text.count('"') != 2 * len(values):  # rare
            text = pattern % tuple([escape(value) for value in values])
        force_setattr(self, "text", text)

    @property
    def pairs(self) -> LabelPairs:
        """Names and values."""
        return tuple(zip(self.names, self.values, strict=True))


def labels_of_pairs(schema: LabelSchema, pairs: Iterable[tuple[str, str]]) -> Labels:
    """Make the labels of one series. Raises LabelError.

    Of two pairs with the same name the first counts: a label copied from a device never replaces one of ours.
    """
    unique: dict[str, str] = {}
    for name, value in pairs:
        unique.setdefault(name, value)
    return Labels(schema, tuple(unique), tuple(unique.values()))


Sample = tuple[Labels, Value]
"""One series of a family and its value."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The definition of a metric. `name` is the full name in the exposition, `_total` included."""

    name: str
    kind: Kind
    help: str
    schema: LabelSchema

    def labels(self, **values: str) -> Labels:
        """Make the labels of one series, in the order given. Optional labels with an empty value are left out.

        Raises LabelError when a name is unknown or a required one is missing.
        """
        optional = self.schema.optional
        if optional:
            values = {name: value for name, value in values.items() if value or name not in optional}
        return Labels(self.schema, tuple(values), tuple(values.values()))

    def sample(self, value: Value, **labels: str) -> Sample:
        """Make one labeled sample. Raises LabelError as `labels` does."""
        return self.labels(**labels), value

    def ordered(self, value: Value, *labels: str) -> Sample:
        """Make one sample from the values of all labels in the order in which they are declared.

        It takes half the time of `sample`, which counts where a collection makes a hundred thousand.
        """
        return Labels(self.schema, self.schema.names, labels), value


def metric(name: str, kind: Kind, help: str, *labels: str, optional: Iterable[str] = ()) -> Metric:
    """Define a metric; `labels` lists every label name, those in `optional` included."""
    return Metric(name, kind, help, LabelSchema(labels, frozenset(optional)))


@dataclass(frozen=True, slots=True)
class Family:
    """Every sample of one metric in one exposition; no two samples may have equal labels."""

    metric: Metric
    samples: Sequence[Sample]
    left_out: int = 0
    """How many samples are left out because there are too many."""


@dataclass(frozen=True, slots=True)
class LargeFamily:
    """A family of which samples are made while it is rendered, because all at once would take too much memory."""

    metric: Metric
    make: Callable[[], Iterator[Sample]]
    """May be called more than once, and from another thread: what it reads must not change."""
    left_out: int = 0
    """As in `Family`."""

    @property
    def samples(self) -> Iterator[Sample]:
        """The samples, made now."""
        return self.make()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some samples of a family."""

    of: Hashable
    """All that they are made of: while it is the same, a renderer may keep what it wrote of them."""
    make: Callable[[], Iterator[Sample]]
    """As in `LargeFamily`."""


@dataclass(frozen=True, slots=True)
class ChunkedFamily:
    """A family whose samples come in chunks, most of which are those of the collection before.

    No two chunks may have samples with equal labels.
    """

    metric: Metric
    chunks: Sequence[Chunk]
    left_out: int = 0
    """As in `Family`."""

    @property
    def samples(self) -> Iterator[Sample]:
        """The samples, made now."""
        return chain.from_iterable(chunk.make() for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Distribution:
    """How often values were up to each bound of a histogram."""

    counts: tuple[int, ...]
    """Per bound, the values up to it and above the bound before; at the end those above all bounds."""
    total: float
    """The sum of all values."""


@dataclass(frozen=True, slots=True)
class HistogramFamily:
    """Histograms of one metric, all with the same bounds."""

    metric: Metric
    bounds: tuple[float, ...]
    """In ascending order, without infinity."""
    series: Sequence[tuple[Labels, Distribution]]
    left_out: int = 0
    """How many histograms are left out because there are too many."""

    @property
    def samples(self) -> Iterator[Sample]:
        """The number of values of each series."""
        return ((labels, sum(found.counts)) for labels, found in self.series)


AnyFamily = Family | LargeFamily | ChunkedFamily | HistogramFamily


def escape(text: str) -> str:
    """Escape a label value as both text formats require it."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return text
