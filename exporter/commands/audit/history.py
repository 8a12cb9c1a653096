"""What one chain of an audit log says: when it observed, its gaps, and its allocations. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from exporter.commands.audit.intervals import Interval, minus
from exporter.commands.audit.span import AllocationSpan, SharedTime, SpanKey, united
from exporter.node.audit.lines import (
    AllocationEnded,
    AllocationLine,
    AllocationOpen,
    AllocationStarted,
    AllocationUsage,
    AnyLine,
    Checkpoint,
    DeviceId,
    MeasuredValue,
    ObservationGap,
    observes,
)

MISSING_LINES = "missing_lines"
"""The reason of a gap where lines of the chain are in none of the files."""


class HistoryGap(NamedTuple):
    """A time for which it is not known what was allocated, on a node or of one device of it."""

    node: str
    device: DeviceId | None
    since: float
    until: float
    reason: str


class _SumsAt(NamedTuple):
    """What had added up at a time."""

    at: float
    observed: float
    gpu_seconds: float


@dataclass(slots=True)
class _SpanParts:
    """What the lines about one allocation say."""

    about: AllocationLine
    started: float
    not_before: float | None
    sums: list[_SumsAt]
    ended: AllocationEnded | None = None
    utilization: MeasuredValue | None = None
    memory: MeasuredValue | None = None
    named_in: int = 0
    """The number of the last line that names it."""


@dataclass(frozen=True, slots=True)
class ChainHistory:
    """What one chain says."""

    node: str
    period: Interval
    """From the first to the last observation."""
    observed: list[Interval]
    """When it was known what is allocated on the node, some devices aside."""
    gaps: list[HistoryGap]
    spans: list[AllocationSpan]


def chain_history(lines: Sequence[AnyLine]) -> ChainHistory:
    """Read a chain; `lines` are in their order, each once, and there is at least one."""
    times = [line.at for line in lines if observes(line)] or [lines[-1].at]
    first, last = min(times), max(times)
    missing = list(_missing(lines))
    gaps = [*_written(lines, last), *(gap for _, gap in missing)]
    of_node = [(gap.since, gap.until) for gap in gaps if gap.device is None]
    observed = minus([(first, last)], of_node)
    spans = []
    for parts in _allocations(lines).values():
        # After lines that are missing, only a line that names the allocation says that it went on.
        cut = [gap.since for seq, gap in missing if seq > parts.named_in]
        spans.append(_span(parts, min(cut, default=last), first, gaps))
    return ChainHistory(lines[0].node, (first, last), observed, gaps, spans)


def _missing(lines: Sequence[AnyLine]) -> Iterator[tuple[int, HistoryGap]]:
    """Yield the gaps that missing lines make, each with the number of the line after it."""
    for position, (before, after) in enumerate(pairwise(lines), 1):
        if after.seq > before.seq + 1:
            since = next((line.at for line in reversed(lines[:position]) if observes(line)), before.at)
            until = next((line.at for line in lines[position:] if observes(line)), after.at)
            yield after.seq, HistoryGap(after.node, None, min(since, until), until, MISSING_LINES)


def _written(lines: Sequence[AnyLine], last: float) -> list[HistoryGap]:
    """The gaps that are written; one whose end is not written lasts as long as the chain."""
    found: dict[tuple[DeviceId | None, float], HistoryGap] = {}
    for line in lines:
        if isinstance(line, ObservationGap):
            since = line.since.timestamp()
            lasting = last if line.device is not None else max(last, line.at)
            until = lasting if line.until is None else line.until.timestamp()
            found[line.device, since] = HistoryGap(line.node, line.device, since, until, line.reason)
    return list(found.values())


def _allocations(lines: Sequence[AnyLine]) -> dict[int, _SpanParts]:
    found: dict[int, _SpanParts] = {}
    for line in lines:
        match line:
            case AllocationStarted():
                _add(found, line, line.at, _seconds(line.not_before))
            case AllocationOpen():
                _add(found, line, line.started.timestamp(), _seconds(line.not_before))
                if len(found[line.allocation].sums) == 1:
                    _use(found[line.allocation], line.at, line.usage)
            case AllocationEnded():
                parts = _add(found, line, line.started.timestamp(), _seconds(line.not_before))
                parts.ended = line
                parts.sums.append(_SumsAt(line.at, line.observed_seconds, line.gpu_seconds))
                parts.utilization, parts.memory = line.utilization, line.memory_bytes
            case Checkpoint():
                for usage in line.allocations:
                    if (known := found.get(usage.allocation)) is not None:
                        known.named_in = line.seq
                        _use(known, line.at, usage)
    return found


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _add(found: dict[int, _SpanParts], line: AllocationLine, started: float, not_before: float | None) -> _SpanParts:
    parts = found.get(line.allocation)
    if parts is None:
        parts = found[line.allocation] = _SpanParts(line, started, not_before, [_SumsAt(started, 0.0, 0.0)])
    parts.about, parts.named_in = line, line.seq
    return parts


def _use(parts: _SpanParts, at: float, usage: AllocationUsage) -> None:
    parts.sums.append(_SumsAt(at, usage.observed_seconds, usage.gpu_seconds))
    parts.utilization, parts.memory = usage.utilization, usage.memory_bytes


def _span(parts: _SpanParts, last: float, first: float, gaps: Sequence[HistoryGap]) -> AllocationSpan:
    """Make the span; `last` is until when it went on if it has not ended, `first` when the chain begins."""
    about, ended = parts.about, parts.ended
    key = SpanKey(about.node, about.device, about.namespace, about.pod, about.container, about.resource)
    sums = parts.sums if ended is not None else _until(parts.sums, max(last, parts.started))
    begin, end = parts.started, sums[-1].at
    own = [
        (gap.since, gap.until)
        for gap in gaps
        if gap.since < end and gap.until > begin and gap.device in (None, about.device)
    ]
    observed = united(_shares(sums, first, own))
    seen = ended.last_seen.timestamp() if ended is not None else sums[-1].at
    times = (parts.started, parts.not_before, ended.at if ended is not None else None, seen)
    return AllocationSpan(key, about, *times, observed, parts.utilization, parts.memory)


def _until(sums: Sequence[_SumsAt], last: float) -> list[_SumsAt]:
    """End the sums with the last observation: a process that goes on with a log writes some before its first."""
    return [*(each._replace(at=min(each.at, last)) for each in sums), sums[-1]._replace(at=last)]


def _shares(sums: Sequence[_SumsAt], first: float, gaps: Sequence[Interval]) -> Iterator[SharedTime]:
    """Yield the observed times with the share of the device in each.

    Seconds that had added up when a process was killed, and were not written, are not in the sums; that the time was
    observed is in the lines. Of the time before the first line only the sums are known.
    """
    share = 1.0
    for before, after in pairwise(sums):
        observed, counted = after.observed - before.observed, after.gpu_seconds - before.gpu_seconds
        if observed > 0:
            share = min(counted / observed, 1.0)
        times = minus([(before.at, after.at)], gaps)
        length = sum(end - begin for begin, end in times)
        spread = min(share, counted / length) if before.at < first and length else share
        yield from (SharedTime(*each, spread) for each in times if spread > 0)
