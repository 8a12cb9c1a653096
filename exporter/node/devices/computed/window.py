"""Counts what happened within the last seconds: a sliding window over values with times. No I/O."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_PARTS = 600
"""Bounds the memory of a window whatever the interval is: an hour at 100 ms is 36,000 samples, and 600 parts of 6 s."""


@dataclass(slots=True)
class _Part(Generic[T]):
    """What came within one part of the window: from `first` on, the latest at `last`, both in Unix seconds."""

    first: float
    last: float
    counts: Counter[T] = field(default_factory=Counter)


class Window(Generic[T]):
    """How many of each value came within the last seconds.

    Values that come within a 600th of the window are kept as one part with the time of the latest, so a value can count
    for so much longer than the window. Where the interval between values is longer than that, the count is exact.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._parts: deque[_Part[T]] = deque()

    def __len__(self) -> int:
        """The number of parts that are kept."""
        return len(self._parts)

    def add(self, value: T, at: float, count: int = 1) -> None:
        """Note that so many of a value came at this time. One that comes out of order joins the latest part."""
        if not self._parts or at - self._parts[-1].first >= self.seconds / MOST_PARTS:
            self._parts.append(_Part(at, at))
        part = self._parts[-1]
        part.counts[value] += count
        part.last = max(part.last, at)
        self._forget(at)

    def counts(self, now: float) -> Counter[T]:
        """Count each value that came within the window before `now`, in Unix seconds."""
        self._forget(now)
        counts: Counter[T] = Counter()
        for part in self._parts:
            counts.update(part.counts)
        return counts

    def _forget(self, now: float) -> None:
        """Forget the parts of which nothing came within the window before `now`."""
        while self._parts and self._parts[0].last <= now - self.seconds:
            self._parts.popleft()
