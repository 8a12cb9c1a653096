"""Label sets that are the same from pass to pass are made once.

On a large cluster a page has a hundred thousand series of which a pass changes a few; making their labels is most
of a pass, and two snapshots that share them take the memory of one.
"""

from exporter.metric import Labels

LabelPairs = tuple[tuple[str, str], ...]


class LabelMemory:
    """Gives `Labels`; keeps those that the current or the last pass asked for."""

    def __init__(self) -> None:
        self._current: dict[LabelPairs, Labels] = {}
        self._last: dict[LabelPairs, Labels] = {}

    def __call__(self, pairs: LabelPairs) -> Labels:
        found = self._current.get(pairs)
        if found is None:
            found = self._last.get(pairs) or Labels(pairs)
            self._current[found.pairs] = found
        return found

    def next_pass(self) -> None:
        """Forgets what the pass before the one that ends here asked for alone."""
        self._last, self._current = self._current, {}
