"""Keeps labels from one collection to the next, so that those which stay the same are made once.

On a large cluster an exposition has a hundred thousand series, of which a collection changes a few. Making labels is
most of a collection's time, and two snapshots that share them take the memory of one.
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
            self._current[key] = found
        return found, value

    def end_collection(self) -> None:
        """Forget the labels that the collection which ends now did not use."""
        self._last, self._current = self._current, {}
