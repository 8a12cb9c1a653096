"""Back-off: how long to wait before something that failed is tried again.

Its users are connections and sessions (DCGM, NVML, kubelet, API server) and the reader process.
"""

import time
from collections.abc import Callable

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts to connect or to open a library: after one failure, and at most."""


class Backoff:
    """A pause between attempts that doubles with every failure. Times are in seconds. For use by one thread."""

    def __init__(self, first: float, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`first` is the pause after one failure; it doubles up to `longest`. `clock` must be monotonic."""
        self._first = first
        self._longest = longest
        self._clock = clock
        self._pause = first
        self._due_at = float("-inf")
        self._failed_at = float("-inf")

    def failed(self) -> float:
        """Record a failed attempt. Returns how long to wait before the next one."""
        pause = self._pause
        self._failed_at = self._clock()
        self._due_at = self._failed_at + pause
        self._pause = min(pause * 2, self._longest)
        return pause

    def reset(self) -> None:
        """Record a success: the next pause, and one that is running now, are no longer than the first one."""
        self._pause = self._first
        self._due_at = min(self._due_at, self._failed_at + self._first)

    @property
    def remaining(self) -> float:
        """Seconds until the next attempt is due; 0 when it is due now."""
        return max(self._due_at - self._clock(), 0.0)

    @property
    def due(self) -> bool:
        """Whether the pause after the last failure is over."""
        return self.remaining == 0.0
