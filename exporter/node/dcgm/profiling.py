"""Watches profiling fields (activity of the GPU's engines), narrows rejections down and retries the rejected fields.

Profiling can be rejected for reasons of its own; then only these fields are missing.
Hopper and newer GPUs measure them through NVML's GPM, which any number of processes can use. Before Hopper, NVIDIA's
closed profiling module reads the hardware counters: one process at a time can have them, and not every set of fields
can be measured at the same time (source, and reported).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exporter.backoff import Backoff
from exporter.node.dcgm import layout
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.reasons import DcgmReason
from exporter.node.dcgm.watch import Entities, Watches

_REJECTIONS = frozenset(
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
# Not in this set is MODULE_NOT_LOADED, although one GPU without GPM is enough for it: an engine without the module then
# rejects the watch of all GPUs of the group (4.6.0, measured).
_PER_GPU = frozenset({layout.NOT_SUPPORTED, layout.PROFILING_NOT_SUPPORTED, layout.PROFILING_LIBRARY})
"""Rejections that can be due to one GPU among several."""
_FINAL = frozenset({layout.NOT_SUPPORTED, layout.PROFILING_NOT_SUPPORTED, layout.MODULE_NOT_LOADED})
"""Rejections that last until the engine restarts: it remembers that the module failed to load (4.6.0, source)."""
FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds until rejected fields are tried again. A profiler, for example, uses the counters for minutes."""

Watched = list[tuple[Entities, tuple[int, ...]]]
"""Which fields of which entities are watched."""


@dataclass(frozen=True, slots=True)
class RejectedWatch:
    """Fields of entities that the engine does not profile now, and its answer."""

    entities: Entities
    fields: tuple[int, ...]
    error: StatusError

    @property
    def final(self) -> bool:
        """Whether the engine will answer the same until it restarts."""
        return self.error.status in _FINAL

    @property
    def problem(self) -> tuple[str, str]:
        """The entry for `Readings.problems`."""
        reason = DcgmReason.of(f"profiling_{self.error.reason.removeprefix('profiling_')}")
        return reason, f"{len(self.fields)} profiling fields of {len(self.entities)} devices: {self.error}"


def watch_profiling(
    watches: Watches, entities: Entities, fields: tuple[int, ...], gpus: Sequence[int]
) -> tuple[Watched, list[RejectedWatch]]:
    """Watch as much as the engine allows. Returns what is watched and what was rejected.

    `gpus` has one entry per entity: the index of its GPU. A rejection that can be due to one GPU is narrowed down by
    halves of the GPUs. Raises StatusError when the failure has nothing to do with profiling.
    """
    try:
        supported = watches.watch_supported(entities, fields, "profiling")
    except StatusError as error:
        if error.status not in _REJECTIONS:
            raise
        if error.status == layout.PROFILING_MULTI_PASS and len(fields) > 1:
            return _watch_fewer_fields(watches, entities, fields, gpus, error)
        if error.status in _PER_GPU and len(set(gpus)) > 1:
            return _watch_halves(watches, entities, fields, gpus)
        return [], [RejectedWatch(entities, fields, error)]
    return [(entities, supported)] if supported else [], []


def _watch_fewer_fields(
    watches: Watches, entities: Entities, fields: tuple[int, ...], gpus: Sequence[int], error: StatusError
) -> tuple[Watched, list[RejectedWatch]]:
    """Watch the first half only: fields are in the order of the counters file, the most important ones first."""
    middle = len(fields) // 2
    watched, rejected = watch_profiling(watches, entities, fields[:middle], gpus)
    return watched, [*rejected, RejectedWatch(entities, fields[middle:], error)]


def _watch_halves(
    watches: Watches, entities: Entities, fields: tuple[int, ...], gpus: Sequence[int]
) -> tuple[Watched, list[RejectedWatch]]:
    """Watch one half of the GPUs, then the other."""
    ordered = sorted(set(gpus))
    first_half = set(ordered[: len(ordered) // 2])
    watched: Watched = []
    rejected: list[RejectedWatch] = []
    for in_first in (True, False):
        chosen = [index for index, gpu in enumerate(gpus) if (gpu in first_half) == in_first]
        some = tuple(entities[index] for index in chosen)
        more_watched, more_rejected = watch_profiling(watches, some, fields, [gpus[index] for index in chosen])
        watched += more_watched
        rejected += more_rejected
    return watched, rejected


class ProfilingRetry:
    """When rejected profiling is tried again: after a pause that doubles, never if every rejection is final."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._planned = False

    def plan(self, rejected: Sequence[RejectedWatch]) -> None:
        """Plan the next attempt after one that ended with these rejections."""
        self._planned = not all(watch.final for watch in rejected)
        if self._planned:
            self._backoff.failed()

    @property
    def due(self) -> bool:
        """Whether it is time for the next attempt."""
        return self._planned and self._backoff.due
