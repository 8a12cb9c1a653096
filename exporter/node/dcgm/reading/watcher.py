"""Watches targets as far as the engine accepts them, and plans when what it rejected is tried again.

Profiling can be rejected for reasons of its own. Hopper and newer GPUs measure it through NVML's GPM, which any number
of processes can use. Before Hopper, NVIDIA's closed profiling module reads the hardware counters: one process at a time
can have them, and not every set of fields can be measured at the same time (source, and reported). One GPU without GPM
is enough for an engine without the module to reject the watch of a whole group (4.6.0, measured).
"""

from collections.abc import Callable, Sequence

from exporter.backoff import Backoff
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.reading.rejection import Narrowed, RejectedTarget, narrow
from exporter.node.dcgm.reading.watch import Watches
from exporter.node.dcgm.targets.targets import WatchTarget, merged

_FINAL = frozenset(
    {
        layout.NOT_SUPPORTED,
        layout.UNKNOWN_FIELD,
        layout.FIELD_UNSUPPORTED,
        layout.GPU_NOT_SUPPORTED,
        layout.PROFILING_NOT_SUPPORTED,
    }
)
"""Answers that do not change while the engine runs. That the module is not loaded is not one: it may be, by now."""


class Watcher:
    """Watches through the `Watches` of one connection."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    def watch(self, target: WatchTarget) -> Narrowed:
        """Watch what the engine accepts of a target, and return what it rejects.

        Raises StatusError when the failure has nothing to do with a device or a field.
        """
        fields, not_now = self._watches.known(target.fields)
        found = Narrowed(
            rejected=[
                RejectedTarget(target.restricted_to(target.entities, (number,)), error)
                for number, error in not_now.items()
            ]
        )
        members = self._members(target.restricted_to(target.entities, fields), found) if fields else None
        if members is not None:
            self._watch_members(members, found)
        return found

    def _watch_members(self, members: WatchTarget, found: Narrowed) -> None:
        try:
            self._watches.watch(members)
        except StatusError as error:
            self._watches.discard(members)
            found.add(self._watch_parts(members, narrow(members, error, self._try)))
        else:
            found.accepted.append(members)

    def _members(self, target: WatchTarget, found: Narrowed) -> WatchTarget | None:
        """Return the target of the entities that a group takes, if any, and add the others to what is rejected."""
        rejected = self._watches.admit(target.entities)
        found.rejected += [
            RejectedTarget(target.restricted_to((entity,), target.fields), error) for entity, error in rejected.items()
        ]
        members = tuple(entity for entity in target.entities if entity not in rejected)
        return target.restricted_to(members, target.fields) if members else None

    def _try(self, target: WatchTarget) -> None:
        """Watch for a moment. Raises StatusError."""
        # An engine has one watch per connection, entity and field (4.6.0, measured), whatever groups it was made with:
        # so the trial's watch ends before the final one begins.
        try:
            self._watches.watch(target)
        finally:
            self._watches.discard(target)

    def _watch_parts(self, whole: WatchTarget, narrowed: Narrowed) -> Narrowed:
        """Watch the parts that were accepted, with as few groups as possible: an engine has only 61 of them."""
        found = Narrowed(rejected=narrowed.rejected)
        for target in merged(narrowed.accepted, whole):
            try:
                self._watches.watch(target)
            except StatusError as error:
                self._watches.discard(target)
                found.rejected.append(RejectedTarget(target, error))
            else:
                found.accepted.append(target)
        return found


class WatchRetry:
    """When what was rejected is tried again: after a pause that doubles, never if every rejection is final."""

    def __init__(self, first: float, longest: float, clock: Callable[[], float]) -> None:
        """Pauses are in seconds."""
        self._backoff = Backoff(first, longest, clock)
        self._planned = False

    def plan(self, rejected: Sequence[RejectedTarget]) -> None:
        """Plan the next attempt for these rejections, unless one is planned already: then that one remains."""
        if all(each.error.status in _FINAL for each in rejected):
            self._planned = False
            self._backoff.reset()
        elif not self._planned or self._backoff.due:
            self._planned = True
            self._backoff.failed()

    @property
    def due(self) -> bool:
        """Whether it is time for the next attempt."""
        return self._planned and self._backoff.due
