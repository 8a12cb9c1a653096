"""Counts what happened within the last seconds: a sliding window over values with times. No I/O."""

from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Window(Generic[T]):
    """Values and how many of each came at which Unix time, as far as they have not been forgotten."""

    def __init__(self) -> None:
        self._entries: deque[tuple[float, T, int]] = deque()

    def add(self, value: T, at: float, count: int = 1) -> None:
        """Note that so many of a value came at this time."""
        self._entries.append((at, value, count))

    def forget_before(self, time: float) -> None:
        """Forget what came at this time or earlier. Entries that came out of order are forgotten with a later one."""
        while self._entries and self._entries[0][0] <= time:
            self._entries.popleft()

    def since(self, time: float) -> Counter[T]:
        """Count each value that came after this time."""
        counts: Counter[T] = Counter()
        for at, value, count in self._entries:
            if at > time:
                counts[value] += count
        return counts
