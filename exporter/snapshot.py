"""Snapshots: the immutable result of one collection (one round of reading every source), ready to be rendered.

`CollectionCycle` reads the sources of one collection; the failure of one is recorded and the others are still read.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from exporter.metric import AnyFamily
from exporter.source import Source, SourceError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """Whether one source could be read in one collection. `reason` and `message` are empty when it could."""

    source: str
    up: bool
    seconds: float
    """How long the read took."""
    reason: str = ""
    message: str = ""


class SourceProblem(NamedTuple):
    """A problem of a source that could be read all the same; `message` is for the log."""

    source: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of one collection, ready to be rendered."""

    taken_at: float
    """Seconds since the epoch, when the collection began."""
    families: tuple[AnyFamily, ...]
    health: tuple[SourceHealth, ...] = ()
    problems: tuple[SourceProblem, ...] = ()
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many values this collection rejected, by (field name, reason)."""
    build: Mapping[str, str] = field(default_factory=dict)
    """Versions read in this collection, for `gpugauge_build_info`."""
    retry_soon: bool = False
    """Whether so little was read that the next collection should not wait for the interval to end."""


@dataclass(slots=True)
class CollectionCycle:
    """One collection: reads sources one after another and records the health of each.

    Where a source fails, only its own data are missing.
    """

    clock: Callable[[], float] = time.perf_counter
    health: list[SourceHealth] = field(default_factory=list)

    def read(self, source: Source[T], otherwise: T) -> T:
        """Read a source and record its health. Returns `otherwise` when it raised SourceError."""
        began = self.clock()
        try:
            found = source.read()
        except SourceError as error:
            took = self.clock() - began
            self.health.append(SourceHealth(source.name, False, took, error.reason, str(error)))
            return otherwise
        self.health.append(SourceHealth(source.name, up=True, seconds=self.clock() - began))
        return found
