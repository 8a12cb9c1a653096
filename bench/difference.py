"""Compares two expositions: which metrics, series, labels and values differ.

An empty label is no label (as in Prometheus). A label that only one of the two has, or whose values are never the same
in both, is named once and makes no series different, unless only that label tells two series apart.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families

PREFIX = "DCGM_"
"""Only these metrics are compared: the others are of the exporter that has them."""
SHOWN = 8
"""How many different values are listed; the rest is counted."""
CLOSE = 5e-7
"""dcgm-exporter writes six decimal places."""

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]


def _values(text: str) -> dict[SeriesKey, float]:
    """The value of every series, by name and labels."""
    found: dict[SeriesKey, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted((name, value) for name, value in sample.labels.items() if value))
            # The parser adds `_total` to the name of a counter that does not end in it.
            name = sample.name if f"{sample.name}{{" in text else sample.name.removesuffix("_total")
            if name.startswith(PREFIX):
                found[name, labels] = sample.value
    return found


def _label_values(values: Mapping[SeriesKey, float]) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for _, labels in values:
        for name, value in labels:
            found[name].add(value)
    return found


def _without(values: Mapping[SeriesKey, float], left_out: str) -> dict[SeriesKey, float]:
    shorter = {
        (name, tuple(label for label in labels if label[0] != left_out)): value
        for (name, labels), value in values.items()
    }
    return shorter if len(shorter) == len(values) else dict(values)


def difference(first: str, second: str) -> Iterator[str]:
    """Write what differs between two expositions (text format), and how much does not."""
    one, other = _values(first), _values(second)
    labels, others = _label_values(one), _label_values(other)
    disjoint = sorted(
        name for name in labels.keys() | others.keys() if not labels.get(name, set()) & others.get(name, set())
    )
    for name in disjoint:
        one, other = _without(one, name), _without(other, name)
    both = one.keys() & other.keys()
    unequal = sorted(key for key in both if abs(one[key] - other[key]) > CLOSE)
    equal = len(both) - len(unequal)
    yield f"\nseries: {len(one)} and {len(other)}; in both {len(both)}, of which {equal} with equal values"
    for name in disjoint:
        yield f"label {name}: {_some(labels.get(name))} and {_some(others.get(name))}"
    for name, pairs in unequal[:SHOWN]:
        yield f"value differs: {_written(name, pairs)}: {one[name, pairs]:g} and {other[name, pairs]:g}"
    if len(unequal) > SHOWN:
        yield f"value differs: {len(unequal) - SHOWN} more"
    yield from _only("first", one.keys() - other.keys())
    yield from _only("second", other.keys() - one.keys())


def _some(values: set[str] | None) -> str:
    return "none" if not values else min(values) + (f" and {len(values) - 1} more" if len(values) > 1 else "")


def _only(which: str, keys: set[SeriesKey]) -> Iterator[str]:
    """Name the metrics of these series, those with the same labels and the same number of series together."""
    shapes: defaultdict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for name, labels in keys:
        shapes[name, tuple(label for label, _ in labels)] += 1
    alike: defaultdict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
    for (name, shape), number in sorted(shapes.items()):
        alike[shape, number].append(name)
    for (shape, number), names in alike.items():
        yield f"only in the {which}, {number} series each with the labels {', '.join(shape)}: {', '.join(names)}"


def _written(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    return f"{name}{{{','.join(f'{label}={value!r}' for label, value in labels)}}}"
