"""Writes what happened in a period, as text for people, as JSON and as CSV. No I/O."""

import csv
import io
import json
from collections.abc import Iterator, Sequence

from exporter.commands.audit.history import HistoryGap
from exporter.commands.audit.span import AllocationSpan
from exporter.commands.audit.usage import (
    AuditUsage,
    Grouping,
    UsageRow,
    device_kind,
    device_text,
    unobserved_hours,
)
from exporter.commands.spreadsheet import text_cell
from exporter.commands.terminal import aligned, printable
from exporter.time_text import utc

_HOUR = 3600.0
_CSV = (
    "row", "node", "gpu", "device", "namespace", "workload", "workload_type", "pod", "container", "requested_by",
    "from", "to", "gpu_hours", "unobserved_hours", "allocations", "reason",
)  # fmt: skip


def as_text(usage: AuditUsage, by: Grouping) -> str:
    """Write tables: of what was allocated, and of the gaps."""
    begin, end = usage.period
    lines = [f"{utc(begin)} to {utc(end)}, nodes: {usage.nodes}", ""]
    lines += aligned(_allocation_table(usage) if by == "allocation" else _usage_table(usage.rows, by))
    if not usage.spans:
        lines.append("Nothing was allocated, as far as is known.")
    lines += ["", "In these times it is not known what was allocated:" if usage.gaps else "No gaps."]
    if usage.gaps:
        lines += aligned(_gap_table(usage.gaps))
    return "".join(f"{printable(line)}\n" for line in lines)


def _usage_table(rows: Sequence[UsageRow], by: Grouping) -> list[tuple[str, ...]]:
    names = ("NAMESPACE",) if by == "namespace" else ("NAMESPACE", "WORKLOAD")
    table = [(*names, "DEVICE", "GPU-HOURS", "UNOBSERVED", "ALLOCATIONS")]
    for row in rows:
        workload = " ".join(filter(None, (row.key.workload_type, row.key.workload)))
        own = (row.key.namespace,) if by == "namespace" else (row.key.namespace, workload)
        hours = (f"{row.gpu_hours:.2f}", f"{row.unobserved_hours:.2f}")
        table.append((*own, row.key.device, *hours, str(row.allocations)))
    return table


def _allocation_table(usage: AuditUsage) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = [
        ("NODE", "GPU", "POD", "CONTAINER", "FROM", "TO", "GPU-HOURS", "UNOBSERVED", "MEAN", "MAX")
    ]
    for span in usage.spans:
        about, used = span.about, span.utilization
        until = utc(span.ended) if span.ended is not None else f"after {utc(span.last_seen)}"
        measured = ("-", "-") if used is None else (f"{used.mean:.0%}", f"{used.max:.0%}")
        hours = (f"{span.gpu_seconds(usage.period) / _HOUR:.2f}", f"{unobserved_hours(span, usage.period):.2f}")
        own = (about.node, device_text(span.key.device), f"{about.namespace}/{about.pod}", about.container)
        table.append((*own, utc(span.started), until, *hours, *measured))
    return table


def _gap_table(gaps: Sequence[HistoryGap]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = [("NODE", "GPU", "FROM", "TO", "HOURS", "REASON")]
    for gap in gaps:
        hours = f"{(gap.until - gap.since) / _HOUR:.2f}"
        table.append((gap.node, device_text(gap.device) or "all", utc(gap.since), utc(gap.until), hours, gap.reason))
    return table


def as_json(usage: AuditUsage, by: Grouping) -> str:
    """Write the same for programs."""
    begin, end = usage.period
    document = {
        "from": utc(begin),
        "to": utc(end),
        "nodes": usage.nodes,
        "rows": [_named(row) for row in _rows(usage, by) if row["row"] != "gap"],
        "gaps": [_named(row) for row in _rows(usage, by) if row["row"] == "gap"],
    }
    return json.dumps(document, indent=2) + "\n"


def _named(row: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in row.items() if key != "row"}


def as_csv(usage: AuditUsage, by: Grouping) -> str:
    """Write one table of everything; `row` is `usage`, `allocation` or `gap`."""
    output = io.StringIO()
    writer = csv.DictWriter(output, _CSV, restval="", lineterminator="\n")
    writer.writeheader()
    for row in _rows(usage, by):
        writer.writerow({key: _cell(value) for key, value in row.items() if key in _CSV})
    return output.getvalue()


def _cell(value: object) -> str:
    """A value in CSV."""
    if isinstance(value, dict):
        value = " ".join(f"{key}={text}" for key, text in value.items())
    if value is None:
        return ""
    return text_cell(value) if isinstance(value, str) else str(value)


def _rows(usage: AuditUsage, by: Grouping) -> Iterator[dict[str, object]]:
    if by == "allocation":
        yield from (_allocation_row(span, usage) for span in usage.spans)
    else:
        yield from map(_usage_row, usage.rows)
    yield from map(_gap_row, usage.gaps)


def _usage_row(row: UsageRow) -> dict[str, object]:
    return {
        "row": "usage",
        **row.key._asdict(),
        "gpu_hours": round(row.gpu_hours, 4),
        "unobserved_hours": round(row.unobserved_hours, 4),
        "allocations": row.allocations,
    }


def _allocation_row(span: AllocationSpan, usage: AuditUsage) -> dict[str, object]:
    about, used, memory = span.about, span.utilization, span.memory
    return {
        "row": "allocation",
        "node": about.node,
        "gpu": device_text(span.key.device),
        "device": device_kind(span),
        "namespace": about.namespace,
        "workload": about.workload,
        "workload_type": about.workload_type,
        "pod": about.pod,
        "pod_uid": about.pod_uid,
        "container": about.container,
        "requested_by": about.requested_by,
        "sharing": about.sharing,
        "from": utc(span.started),
        "not_before": None if span.not_before is None else utc(span.not_before),
        "last_seen": utc(span.last_seen),
        "to": None if span.ended is None else utc(span.ended),
        "gpu_hours": round(span.gpu_seconds(usage.period) / _HOUR, 4),
        "unobserved_hours": round(unobserved_hours(span, usage.period), 4),
        "utilization_mean": None if used is None else used.mean,
        "utilization_max": None if used is None else used.max,
        "memory_bytes_mean": None if memory is None else memory.mean,
        "memory_bytes_max": None if memory is None else memory.max,
    }


def _gap_row(gap: HistoryGap) -> dict[str, object]:
    times = {"from": utc(gap.since), "to": utc(gap.until)}
    hours = round((gap.until - gap.since) / _HOUR, 4)
    return {
        "row": "gap", "node": gap.node, "gpu": device_text(gap.device), **times, "unobserved_hours": hours,
        "reason": gap.reason,
    }  # fmt: skip
