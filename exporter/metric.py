"""The vocabulary of a page: a metric, the labels of one series, and a family of samples.

Labels are rendered once, when the thing they describe is first seen, and shared by all of its series: a pass
formats only values.
"""

from dataclasses import dataclass, field
from enum import StrEnum

Value = int | float


class Kind(StrEnum):
    """Prometheus metric types that our own renderer writes."""

    GAUGE = "gauge"
    COUNTER = "counter"
    UNTYPED = "untyped"


@dataclass(frozen=True, slots=True)
class Metric:
    """A definition. `name` is the full name as it appears on the page; `labels` lists every label name."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


def escape(text: str) -> str:
    """A label value as both text formats want it."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return text


@dataclass(frozen=True, slots=True)
class Labels:
    """The label pairs of one series, in page order, and their text.

    The first of two pairs with one name wins: a label of ours is never replaced by a copied one.
    """

    pairs: tuple[tuple[str, str], ...]
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(dict(self.pairs)) != len(self.pairs):
            unique = dict(reversed(self.pairs))
            object.__setattr__(self, "pairs", tuple({name: unique[name] for name, _ in self.pairs}.items()))
        inner = ",".join([f'{name}="{escape(value)}"' for name, value in self.pairs])
        object.__setattr__(self, "text", f"{{{inner}}}" if inner else "")

    def and_(self, *more: tuple[str, str]) -> "Labels":
        """The same labels followed by more."""
        return Labels((*self.pairs, *more))


NO_LABELS = Labels(())


@dataclass(frozen=True, slots=True)
class Family:
    """Every sample of one metric on one page; no two samples may carry equal labels."""

    metric: Metric
    samples: list[tuple[Labels, Value]]
