"""What one pass saw, and the guard around each source in that pass."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from exporter.metric import Family
from exporter.source import Source, SourceError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """How one source did in one pass; `reason` and `message` are empty when it answered."""

    source: str
    up: bool
    seconds: float
    reason: str = ""
    message: str = ""


class SourceProblem(NamedTuple):
    """What is wrong with a source that still answers; `sentence` is for the log."""

    source: str
    reason: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An immutable answer to "what is there now": the only thing handed between threads."""

    taken_at: float
    families: tuple[Family, ...]
    health: tuple[SourceHealth, ...] = ()
    problems: tuple[SourceProblem, ...] = ()
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many values this pass did not show, by (field name, reason)."""
    build: Mapping[str, str] = field(default_factory=dict)
    """Versions learned in this pass, for `gpugauge_build_info`."""


@dataclass(slots=True)
class Pass:
    """Reads sources one after another and remembers how each did; a failed one costs only its own data."""

    clock: Callable[[], float] = time.perf_counter
    health: list[SourceHealth] = field(default_factory=list)

    def read(self, source: Source[T], otherwise: T) -> T:
        """The source's answer, or `otherwise` when it has none."""
        began = self.clock()
        try:
            answer = source.read()
        except SourceError as error:
            took = self.clock() - began
            self.health.append(
                SourceHealth(source.name, up=False, seconds=took, reason=error.reason, message=str(error))
            )
            return otherwise
        self.health.append(SourceHealth(source.name, up=True, seconds=self.clock() - began))
        return answer
