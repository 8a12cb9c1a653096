"""The rows of the table: GPU-hours of a period by namespace, workload or allocation, and the gaps in it. No I/O."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.commands.audit.history import HistoryGap
from exporter.commands.audit.intervals import Interval, clipped, seconds
from exporter.commands.audit.record import AuditRecord
from exporter.commands.audit.span import AllocationSpan
from exporter.node.audit.lines import DeviceId

Grouping = Literal["namespace", "workload", "allocation"]
_HOUR = 3600.0


class UsageKey(NamedTuple):
    """What the GPU-hours of a row are added up for."""

    namespace: str
    workload: str
    """Empty where rows are namespaces; the name of the pod where its workload is not known."""
    workload_type: str
    device: str
    """What kind of device: the model of the GPU, and the profile of a MIG device."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """GPU-hours in the period: one hour of a device that one container has alone is one."""

    key: UsageKey
    gpu_hours: float
    """Observed."""
    unobserved_hours: float
    """At most so many more, in gaps."""
    allocations: int


@dataclass(frozen=True, slots=True)
class AuditUsage:
    """What happened in a period."""

    period: Interval
    nodes: int
    rows: list[UsageRow]
    spans: list[AllocationSpan]
    gaps: list[HistoryGap]


def audit_usage(record: AuditRecord, period: Interval, by: Grouping, gpu: str = "") -> AuditUsage:
    """Add up the period; with `gpu`, the UUID of one, of its allocations and of the gaps that concern it."""
    spans = [span for span in record.spans if span.overlaps(period) and gpu in ("", span.key.device.uuid)]
    gaps = record.gaps(period)
    nodes = set(record.observed)
    if gpu:
        nodes = {span.key.node for span in record.spans if span.key.device.uuid == gpu}
        gaps = [each for each in gaps if each.node in nodes and (each.device is None or each.device.uuid == gpu)]
    return AuditUsage(period, len(nodes), _rows(spans, period, by), spans, gaps)


def _rows(spans: Iterable[AllocationSpan], period: Interval, by: Grouping) -> list[UsageRow]:
    grouped: dict[UsageKey, list[AllocationSpan]] = defaultdict(list)
    for span in spans:
        grouped[_key(span, by)].append(span)
    return [
        UsageRow(
            key,
            sum(span.gpu_seconds(period) for span in own) / _HOUR,
            sum(unobserved_hours(span, period) for span in own),
            len(own),
        )
        for key, own in sorted(grouped.items())
    ]


def unobserved_hours(span: AllocationSpan, period: Interval) -> float:
    """Hours of the period in which the allocation may have gone on, times the share of the device that it had last."""
    share = span.observed[-1].share if span.observed else 1.0
    return seconds(clipped(span.unobserved, period)) * share / _HOUR


def _key(span: AllocationSpan, by: Grouping) -> UsageKey:
    about, device = span.about, device_kind(span)
    if by == "namespace":
        return UsageKey(about.namespace, "", "", device)
    return UsageKey(about.namespace, about.workload or about.pod, about.workload_type, device)


def device_kind(span: AllocationSpan) -> str:
    """The model of the GPU, and the profile of a MIG device."""
    return " ".join(filter(None, (span.about.model, span.key.device.profile)))


def device_text(device: DeviceId | None) -> str:
    """The UUID of a GPU, with the ids of a MIG device; empty for a whole node."""
    if device is None:
        return ""
    ids = (f"{name} {number}" for name, number in (("GI", device.gi), ("CI", device.ci)) if number >= 0)
    return " ".join((device.uuid, *ids))
