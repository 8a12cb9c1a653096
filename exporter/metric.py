"""Metrics, labels and metric families: what the programs build and `exporter/exposition/render.py` turns into text.

A metric declares its label names once; labels with a missing or an unknown name cannot be made, and a family takes
only labels that were made for its metric. The text of labels is formatted once, when the device, container or workload
that they describe is first seen, and shared by all its series, so that a collection formats only values.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class LabelSchema:
    """The label names of a metric. Names in `optional` may be missing from a series; all others must be there."""

    names: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    _accepted: set[tuple[str, ...]] = field(default_factory=set, init=False, repr=False, compare=False)
    """Combinations of names that were found to fit: checked once, because every collection uses the same few."""

    def check(self, names: tuple[str, ...]) -> None:
        """Raise LabelError unless these names are declared and every required one is among them."""
        if names in self._accepted:
            return
        unknown = set(names) - set(self.names)
        missing = set(self.names) - self.optional - set(names)
        if unknown or missing:
            raise LabelError(f"unknown labels {sorted(unknown)}, missing labels {sorted(missing)}")
        self._accepted.add(names)


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The labels of one series, in the order of the exposition, and their text. Raises LabelError.

    Of two pairs with the same name the first counts: a label copied from a device never replaces one of ours.
    Python's garbage collector need not look at the labels of a hundred thousand series: they refer to strings only.
    """

    schema: LabelSchema
    pairs: LabelPairs
    text: str = ""
    """`{name="value",…}` as both formats write it; empty without labels. Made from the pairs."""

    def __post_init__(self) -> None:
        if len(dict(self.pairs)) != len(self.pairs):
            unique = dict(reversed(self.pairs))
            force_setattr(self, "pairs", tuple({name: unique[name] for name, _ in self.pairs}.items()))
        self.schema.check(tuple([name for name, _ in self.pairs]))
        inner = ",".join([f'{name}="{escape(value)}"' for name, value in self.pairs])
        force_setattr(self, "text", f"{{{inner}}}" if inner else "")


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
        return Labels(self.schema, tuple([pair for pair in values.items() if pair[1] or pair[0] not in optional]))

    def sample(self, value: Value, **labels: str) -> Sample:
        """Make one labeled sample. Raises LabelError as `labels` does."""
        return self.labels(**labels), value


def metric(name: str, kind: Kind, help: str, *labels: str, optional: Iterable[str] = ()) -> Metric:
    """Define a metric; `labels` lists every label name, those in `optional` included."""
    return Metric(name, kind, help, LabelSchema(labels, frozenset(optional)))


@dataclass(frozen=True, slots=True)
class Family:
    """Every sample of one metric in one exposition; no two samples may have equal labels.

    Raises LabelError when a sample's labels were made for other label names.
    """

    metric: Metric
    samples: list[Sample]

    def __post_init__(self) -> None:
        schema = self.metric.schema
        for labels, _ in self.samples:
            if labels.schema is not schema and labels.schema != schema:  # nearly always the same object
                raise LabelError(f"labels of another metric on {self.metric.name}: {labels.text}")


def escape(text: str) -> str:
    """Escape a label value as both text formats require it."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return text
