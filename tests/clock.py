"""The clock of tests: it stands still until a test moves it."""

from dataclasses import dataclass


@dataclass
class Clock:
    """Returns `now`, in seconds, when it is called."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now
