"""Watching profiling fields, which may be refused for reasons of their own: only they are then missing.

Before Hopper one user at a time may have the hardware counters, and not every set of fields fits into one pass. What
is final and what may pass follows from the status codes and from how the engine remembers a module's failure.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exporter.node.dcgm import layout
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.watch import Entities, Watches

_REFUSALS = frozenset(
    {
        layout.NOT_SUPPORTED,
        layout.NO_PERMISSION,
        layout.REQUIRES_ROOT,
        layout.FIELD_UNSUPPORTED,
        layout.MODULE_NOT_LOADED,
        layout.PROFILING_NOT_SUPPORTED,
        layout.PROFILING_LIBRARY,
        layout.PROFILING_MULTI_PASS,
        layout.PAUSED,
    }
)
_PER_BOARD = frozenset({layout.NOT_SUPPORTED, layout.PROFILING_NOT_SUPPORTED, layout.PROFILING_LIBRARY})
"""Refusals that may concern one board among several."""
_FINAL = frozenset({layout.NOT_SUPPORTED, layout.PROFILING_NOT_SUPPORTED, layout.MODULE_NOT_LOADED})
"""Refusals that hold until the engine restarts."""
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds until the counters are asked for again; whoever has them, a profiler run say, keeps them for minutes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Fields of entities that the engine does not profile now, and its answer."""

    entities: Entities
    fields: tuple[int, ...]
    error: StatusError

    @property
    def final(self) -> bool:
        return self.error.status in _FINAL

    @property
    def problem(self) -> tuple[str, str]:
        """For Readings.problems."""
        reason = f"profiling_{self.error.reason.removeprefix('profiling_')}"
        return reason, f"{len(self.fields)} profiling fields of {len(self.entities)} devices: {self.error}"


def watch_profiling(
    watches: Watches, entities: Entities, fields: tuple[int, ...], boards: Sequence[int]
) -> tuple[list[tuple[Entities, tuple[int, ...]]], list[Refusal]]:
    """Watches as much as the engine allows: what it took, and what it refused.

    `boards` gives the board of each entity: a refusal that may be one board's is tried by halves of the boards.
    Raises StatusError when the trouble is not one of profiling.
    """
    try:
        accepted = watches.watch_accepted(entities, fields, "profiling")
    except StatusError as error:
        if error.status not in _REFUSALS:
            raise
        if error.status == layout.PROFILING_MULTI_PASS and len(fields) > 1:
            return _fewer(watches, entities, fields, boards, error)
        if error.status in _PER_BOARD and len(set(boards)) > 1:
            return _by_halves(watches, entities, fields, boards)
        return [], [Refusal(entities, fields, error)]
    return [(entities, accepted)] if accepted else [], []


def _fewer(
    watches: Watches, entities: Entities, fields: tuple[int, ...], boards: Sequence[int], error: StatusError
) -> tuple[list[tuple[Entities, tuple[int, ...]]], list[Refusal]]:
    """The first half of the fields, which are in the order of the counters file: the first ones matter most."""
    middle = len(fields) // 2
    taken, refused = watch_profiling(watches, entities, fields[:middle], boards)
    return taken, [*refused, Refusal(entities, fields[middle:], error)]


def _by_halves(
    watches: Watches, entities: Entities, fields: tuple[int, ...], boards: Sequence[int]
) -> tuple[list[tuple[Entities, tuple[int, ...]]], list[Refusal]]:
    ordered = sorted(set(boards))
    first = set(ordered[: len(ordered) // 2])
    taken: list[tuple[Entities, tuple[int, ...]]] = []
    refused: list[Refusal] = []
    for half in (True, False):
        chosen = [place for place, board in enumerate(boards) if (board in first) == half]
        some = tuple(entities[place] for place in chosen)
        more_taken, more_refused = watch_profiling(watches, some, fields, [boards[place] for place in chosen])
        taken += more_taken
        refused += more_refused
    return taken, refused


class Retry:
    """When refused profiling is asked for again: after a pause that doubles; never once every refusal is final."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._at: float | None = None

    def plan(self, refusals: Sequence[Refusal]) -> None:
        """Plans the next try after one that ended with these refusals."""
        if all(refusal.final for refusal in refusals):
            self._at = None
            return
        self._at = self._clock() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    @property
    def due(self) -> bool:
        return self._at is not None and self._clock() >= self._at
