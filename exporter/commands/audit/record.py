"""Puts the chains of many nodes and files together: allocations, observed times and gaps. No I/O.

The result does not depend on the order of the files, nor on how often a line is in them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from exporter.commands.audit.history import ChainHistory, HistoryGap, chain_history
from exporter.commands.audit.intervals import Interval, clipped, minus, union
from exporter.commands.audit.span import AllocationSpan, SpanKey, joined
from exporter.node.audit.lines import AnyLine

NO_RECORD = "no_record"
"""The reason of a gap of which no line says anything."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """What all lines say together."""

    spans: list[AllocationSpan]
    """By node, device and time."""
    observed: dict[str, list[Interval]]
    """By node, when it was known what is allocated."""
    written_gaps: list[HistoryGap]
    whole: Interval
    """From the first to the last time that a line is about."""

    def gaps(self, period: Interval) -> list[HistoryGap]:
        """The times of the period for which it is not known what was allocated, with why."""
        found = []
        for node, observed in sorted(self.observed.items()):
            own = [gap for gap in self.written_gaps if gap.node == node]
            of_node = [gap for gap in own if gap.device is None]
            for since, until in minus([period], observed):
                found += _explained(node, (since, until), of_node)
            for gap in own:
                if gap.device is not None:
                    known = minus(clipped([(gap.since, gap.until)], period), minus([period], observed))
                    found += [gap._replace(since=since, until=until) for since, until in known]
        return sorted(set(found), key=lambda gap: (gap.node, gap.device or (), gap.since, gap.until, gap.reason))


def audit_record(chains: Iterable[Sequence[AnyLine]]) -> AuditRecord:
    """Put chains together, of which there is at least one."""
    histories = [chain_history(lines) for lines in chains]
    by_key: dict[SpanKey, list[AllocationSpan]] = defaultdict(list)
    for history in histories:
        for span in history.spans:
            by_key[span.key].append(span)
    spans = [span for own in by_key.values() for span in joined(own)]
    gaps = sorted((gap for history in histories for gap in history.gaps), key=repr)
    times = [time for history in histories for time in history.period] + [span.started for span in spans]
    return AuditRecord(sorted(spans, key=_order), _observed(histories), gaps, (min(times), max(times)))


def _observed(histories: Sequence[ChainHistory]) -> dict[str, list[Interval]]:
    found: dict[str, list[Interval]] = defaultdict(list)
    for history in histories:
        found[history.node] += history.observed
    return {node: union(intervals) for node, intervals in found.items()}


def _order(span: AllocationSpan) -> tuple[object, ...]:
    key = span.key
    return key.node, key.device, span.started, key.namespace, key.pod, key.container, key.resource


def _explained(node: str, gap: Interval, written: Sequence[HistoryGap]) -> list[HistoryGap]:
    """Divide a time that was not observed by why that is so."""
    inside = [each for each in written if each.since < gap[1] and each.until > gap[0]]
    cuts = {time for each in inside for time in (each.since, each.until) if gap[0] < time < gap[1]}
    found: list[HistoryGap] = []
    times = sorted({*gap, *cuts})
    for since, until in pairwise(times):
        reasons = {each.reason for each in inside if each.since <= since and each.until >= until}
        reason = " ".join(sorted(reasons)) or NO_RECORD
        if found and found[-1].reason == reason:
            found[-1] = found[-1]._replace(until=until)
        else:
            found.append(HistoryGap(node, None, since, until, reason))
    return found
