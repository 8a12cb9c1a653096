"""Keeps label objects (checked and formatted text) from one collection to the next, so that each is made once.

On a large cluster an exposition has a hundred thousand series, and the labels of few of them change between
collections. Making labels is most of a collection's time, and two snapshots that share them take the memory of one.
"""

from exporter.metric import LabelPairs, Labels, Metric, Sample, Value

Key = tuple[str, LabelPairs]


class LabelCache:
    """Makes samples; keeps the labels that the current or the last collection used."""

    def __init__(self) -> None:
        self._current: dict[Key, Labels] = {}
        self._last: dict[Key, Labels] = {}

    def sample(self, metric: Metric, value: Value, **labels: str) -> Sample:
        """Make one labeled sample, as `Metric.sample` does. Raises LabelError."""
        key = (metric.name, tuple(labels.items()))
        found = self._current.get(key)
        if found is None:
            found = self._last.get(key) or metric.labels(**labels)
            # Without empty labels the pairs are equal to those of the key: kept once, they take half the memory.
            self._current[(metric.name, found.pairs) if found.pairs == key[1] else key] = found
        return found, value

    def end_collection(self) -> None:
        """Forget the labels that the collection which ends now did not use."""
        self._last, self._current = self._current, {}
