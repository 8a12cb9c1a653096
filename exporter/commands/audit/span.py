"""The time for which one container had one device, as far as lines of audit logs say. No I/O."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from exporter.commands.audit.intervals import Interval, clipped, minus
from exporter.node.audit.lines import AllocationLine, DeviceId, MeasuredValue

_SAME_SHARE = 1e-6


class SpanKey(NamedTuple):
    """What makes two spans of different chains parts of one allocation, if their times fit too."""

    node: str
    device: DeviceId
    namespace: str
    pod: str
    container: str
    resource: str


class SharedTime(NamedTuple):
    """A time in which the container had this share of the device."""

    begin: float
    end: float
    share: float


@dataclass(frozen=True, slots=True)
class AllocationSpan:
    """An allocation. Times are Unix seconds."""

    key: SpanKey
    about: AllocationLine
    """The last line about it, for what else is known of the pod."""
    started: float
    not_before: float | None
    """The last time at which it was not there; None where that is not known."""
    ended: float | None
    """The first time at which it was not there any more; None where no line says so."""
    last_seen: float
    """The last time at which it was there."""
    observed: tuple[SharedTime, ...]
    utilization: MeasuredValue | None = None
    memory: MeasuredValue | None = None

    @property
    def until(self) -> float:
        """The end of what is known of it."""
        return self.last_seen if self.ended is None else max(self.ended, self.last_seen)

    @property
    def unobserved(self) -> list[Interval]:
        """The times between its begin and its end in which nothing was observed."""
        return minus([(self.started, self.until)], [(each.begin, each.end) for each in self.observed])

    def gpu_seconds(self, period: Interval) -> float:
        """Observed seconds in the period, times its share of the device."""
        return sum(
            (end - begin) * each.share
            for each in self.observed
            for begin, end in clipped([(each.begin, each.end)], period)
        )

    def overlaps(self, period: Interval) -> bool:
        """Whether it was there at any time of the period, as far as is known."""
        return self.started < period[1] and self.until > period[0]


def joined(spans: Iterable[AllocationSpan]) -> list[AllocationSpan]:
    """Join spans of one key that are the same allocation, seen by two processes at a time or one after the other."""
    found: list[AllocationSpan] = []
    for span in sorted(spans, key=lambda each: (each.started, each.until, each.about.chain, each.about.allocation)):
        if found and _same_allocation(found[-1], span):
            found[-1] = _join(found[-1], span)
        else:
            found.append(span)
    return found


def _same_allocation(earlier: AllocationSpan, later: AllocationSpan) -> bool:
    """Whether the later one began while the earlier one lasted, or was found by a process that began after it."""
    mine, theirs = earlier.about.pod_uid, later.about.pod_uid
    if mine and theirs and mine != theirs:
        return False
    return later.started < earlier.until or (earlier.ended is None and later.not_before is None)


def _join(earlier: AllocationSpan, later: AllocationSpan) -> AllocationSpan:
    last = max(earlier, later, key=lambda each: (each.until, each.about.chain))
    measured = [each for each in (earlier, later) if each.utilization is not None]
    best = max(measured, key=lambda each: (each.utilization or MeasuredValue(0, 0, 0)).observed_seconds, default=last)
    return AllocationSpan(
        earlier.key,
        last.about,
        earlier.started,
        earlier.not_before,
        last.ended,
        max(earlier.last_seen, later.last_seen),
        shared_times((*earlier.observed, *later.observed)),
        best.utilization,
        best.memory,
    )


def shared_times(times: Sequence[SharedTime]) -> tuple[SharedTime, ...]:
    """Unite times of several spans: where they overlap, the largest share counts."""
    return united(_largest(sorted(times)))


def _largest(times: Sequence[SharedTime]) -> Iterator[SharedTime]:
    """Yield times that do not overlap, in their order, each with the largest share; `times` are in that order."""
    cuts = sorted({cut for each in times for cut in (each.begin, each.end)})
    left, active = deque(times), list[SharedTime]()
    for begin, end in pairwise(cuts):
        while left and left[0].begin <= begin:
            active.append(left.popleft())
        active = [each for each in active if each.end > begin]
        if active:
            yield SharedTime(begin, end, max(each.share for each in active))


def united(times: Iterable[SharedTime]) -> tuple[SharedTime, ...]:
    """Make one of neighbors with the same share; `times` do not overlap and are in their order."""
    found: list[SharedTime] = []
    for time in times:
        before = found[-1] if found else None
        if before is not None and before.end == time.begin and abs(before.share - time.share) < _SAME_SHARE:
            found[-1] = SharedTime(before.begin, time.end, before.share)
        else:
            found.append(time)
    return tuple(found)
