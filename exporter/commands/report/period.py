"""The time that a report is about, and the parts in which it is asked for. No I/O, no state."""

from dataclasses import dataclass
from itertools import pairwise

from exporter.config import ConfigError

DAY = 86_400
STEP = 300
"""Seconds between two samples of a report: few enough that a day of 10,000 GPUs is one query of 3 million samples."""
_LONGEST_DAYS = 400


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time: at most a day, so that one query stays small. Both in seconds since the epoch."""

    start: int
    end: int

    @property
    def steps(self) -> int:
        """How many samples a series has that is there all the time."""
        return (self.end - self.start) // STEP

    @property
    def hours(self) -> float:
        """Its length."""
        return (self.end - self.start) / 3600


def parts(start: float | None, end: float | None, now: float, days: int) -> list[Part]:
    """Split the time at midnights (UTC); without an end it ends now, without a begin it is so many days long.

    Both ends are moved to whole steps. Raises ConfigError for a time that is empty, too long or yet to come.
    """
    last = int(min(now, now if end is None else end)) // STEP * STEP
    first = last - days * DAY if start is None else int(start) // STEP * STEP
    if first >= last:
        raise ConfigError("--from is not before --to, or is yet to come")
    if last - first > _LONGEST_DAYS * DAY:
        raise ConfigError(f"--from and --to are more than {_LONGEST_DAYS} days apart")
    bounds = [first, *range((first // DAY + 1) * DAY, last, DAY), last]
    return [Part(one, other) for one, other in pairwise(bounds)]
