"""The tables of a report, which every form for people shows: title, columns, rows and what to know about them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.commands.report.advice import NEEDED_COVERAGE, NEEDED_HOURS
from exporter.commands.report.ledger import LedgerRow, closing_error
from exporter.commands.report.report import GpuReport
from exporter.commands.report.usage import UsageGrouping, UsageSum, key_columns
from exporter.time_text import utc

NOTHING = "-"
"""What stands for a value that there is not."""
CLOSES_WITHIN = 0.001
"""By how much the money of the states may miss that of all GPUs."""
_RULES = (
    "MIG devices count by their compute slices: a 3g.40gb is 3/7 of a GPU.",
    "Of a shared device with N allocated replicas, each is 1/N; how busy it was is not known, so it is not observed.",
    "Used: time in which the device was busy. Wasted: observed and not used. Idle: less than 1 % busy.",
)


class ReportColumn(NamedTuple):
    """A column, by its heading; numbers are aligned to the right."""

    title: str
    number: bool = True


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with a heading."""

    title: str
    columns: tuple[ReportColumn, ...]
    rows: Sequence[tuple[str, ...]]
    empty: str
    """What is said where there is no row."""
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    """How many rows are not shown."""


def head(found: GpuReport) -> list[str]:
    """What the report is about."""
    days = sum(part.hours for part in found.parts) / 24
    return [f"GPUs from {utc(found.parts[0].start)} to {utc(found.parts[-1].end)}, {days:.1f} days"]


def tables(found: GpuReport, by: UsageGrouping, top: int) -> list[ReportTable]:
    """All tables, each with at most `top` rows."""
    money = _Money(found.currency)
    return [
        _fleet(found, money),
        _usage(found, by, top, money),
        _idle(found, top, money),
        _partly_idle(found, top),
        _pending(found, top),
        _energy(found),
        _enough(found, top),
    ]


def notes(found: GpuReport) -> list[str]:
    """How hours are counted, and what is missing."""
    total = found.ledger.total
    lines = list(_RULES)
    if total.gpu_hours:
        observed = 1 - total.hours.unobserved / total.gpu_hours
        lines.append(f"{observed:.1%} of the GPU-hours were observed. Nothing is assumed of the others.")
    if found.without_gpus:
        hours = sum(part.hours for part in found.without_gpus)
        first, last = utc(found.without_gpus[0].start), utc(found.without_gpus[-1].end)
        lines.append(f"No GPU was seen in {hours:.0f} h between {first} and {last}: nothing is reported of that time.")
    if total.surplus_hours > CLOSES_WITHIN * total.gpu_hours:
        lines.append(
            f"The states of GPUs were {total.surplus_hours:.1f} h longer than the GPUs were there, and are made to fit."
        )
    if found.currency is None:
        lines.append(f"Prices are in {', '.join(sorted(found.ledger.currencies))}, so that no costs are added up.")
    elif total.unpriced_hours:
        unpriced = sorted({model or "unknown" for (_, model), row in found.ledger.rows.items() if row.unpriced_hours})
        lines.append(f"{total.unpriced_hours:.1f} GPU-hours have no price: {', '.join(unpriced)}.")
    lines += [f"Partial data: {warning}" for warning in found.warnings]
    return lines


class _Money:
    """Writes amounts; nothing where there is no currency."""

    def __init__(self, currency: str | None) -> None:
        self.currency = currency or ""

    def columns(self, *titles: str) -> tuple[ReportColumn, ...]:
        return tuple(ReportColumn(f"{title} {self.currency}") for title in titles) if self.currency else ()

    def cells(self, *amounts: float) -> tuple[str, ...]:
        return tuple(f"{amount:,.2f}" for amount in amounts) if self.currency else ()


def hours_text(value: float) -> str:
    """Hours as people read them."""
    return f"{value:,.1f}"


def share_text(value: float, whole: float) -> str:
    """A share of a whole; a dash where there is no whole."""
    return f"{value / whole:.0%}" if whole else NOTHING


def _fleet(found: GpuReport, money: _Money) -> ReportTable:
    rows = [_fleet_row((cluster, model or "unknown"), row, money) for (cluster, model), row in _ordered(found)]
    total = found.ledger.total
    if len(rows) > 1:
        rows.append(_fleet_row(("all", "all"), total, money))
    kinds = ("GPU-hours", "allocated", "busy", "idle", "shared", "activity unknown")
    free = ("unallocated", "stranded", "unhealthy", "unobserved")
    columns = (
        ReportColumn("cluster", number=False),
        ReportColumn("model", number=False),
        *map(ReportColumn, (*kinds, *free)),
    )
    columns = (*columns, *money.columns("price", "allocated"))
    return ReportTable("Fleet", columns, rows, "No GPU was there in this time.", _closing(total, money))


def _ordered(found: GpuReport) -> Iterable[tuple[tuple[str, str], LedgerRow]]:
    return sorted(found.ledger.rows.items(), key=lambda row: (-row[1].gpu_hours, row[0]))


def _fleet_row(key: tuple[str, str], row: LedgerRow, money: _Money) -> tuple[str, ...]:
    hours = row.hours
    values = (row.gpu_hours, hours.allocated, hours.busy, hours.idle, hours.shared, hours.activity_unknown)
    free = (hours.unallocated, hours.stranded, hours.unhealthy, hours.unobserved)
    return (*_named(key), *map(hours_text, (*values, *free)), *money.cells(row.price_of_all, row.cost.allocated))


def _closing(total: LedgerRow, money: _Money) -> list[str]:
    if not total.gpu_hours:
        return []
    hours, cost = total.hours, total.cost
    text = "allocated + unallocated + stranded + unhealthy + unobserved"
    if money.currency:
        parts = (cost.allocated, cost.unallocated, cost.stranded, cost.unhealthy, cost.unobserved)
        whole, unit = f"{total.price_of_all:,.2f}", money.currency
        summed = " + ".join(f"{part:,.2f}" for part in parts)
    else:
        parts = (hours.allocated, hours.unallocated, hours.stranded, hours.unhealthy, hours.unobserved)
        whole, unit = hours_text(total.gpu_hours), "GPU-hours"
        summed = " + ".join(map(hours_text, parts))
    error = closing_error(total)
    verdict = "closes" if error <= CLOSES_WITHIN else "DOES NOT CLOSE"
    return [f"{text} = {summed} = {whole} {unit}: {verdict} ({error:.3%} apart)"]


_USAGE = ("GPU-hours", "used", "wasted", "not observed", "used %", "unused GiB-hours", "pods")


def _usage(found: GpuReport, by: UsageGrouping, top: int, money: _Money) -> ReportTable:
    rows = found.rows(by)
    lines = [(*_named(key), *_usage_cells(row, money)) for key, row in list(rows.items())[:top]]
    columns = tuple(ReportColumn(name.replace("_", " "), number=False) for name in key_columns(by))
    summed = sum(row.hours for row in rows.values())
    allocated = found.ledger.total.hours.allocated
    note = (
        f"{hours_text(summed)} GPU-hours of pods by samples every 5 minutes; the exporters counted "
        f"{hours_text(allocated)} allocated GPU-hours."
    )
    columns = (*columns, *map(ReportColumn, _USAGE), *money.columns("cost", "wasted"))
    title = f"Allocated by {by.replace('_', ' ')}"
    return ReportTable(title, columns, lines, "No pod had a GPU.", [note], max(0, len(rows) - top))


def _named(key: Sequence[str]) -> tuple[str, ...]:
    return tuple(part or NOTHING for part in key)


def _usage_cells(row: UsageSum, money: _Money) -> tuple[str, ...]:
    hours = map(hours_text, (row.hours, row.used, row.wasted, row.hours - row.observed))
    share = share_text(row.used, row.observed)
    cells = (*hours, share, hours_text(row.unused_gib_hours), str(len(row.pods)))
    return (*cells, *money.cells(row.cost, row.wasted_cost))


def _idle(found: GpuReport, top: int, money: _Money) -> ReportTable:
    rows = found.idle_workloads()
    lines = [
        (*_named(key), hours_text(row.idle), share_text(row.idle, row.observed), *money.cells(row.wasted_cost))
        for key, row in list(rows.items())[:top]
    ]
    columns = tuple(ReportColumn(name.replace("_", " "), number=False) for name in key_columns("workload"))
    columns = (*columns, ReportColumn("idle GPU-hours"), ReportColumn("idle %"), *money.columns("wasted"))
    empty = "No workload was idle."
    return ReportTable("Most idle workloads", columns, lines, empty, [], max(0, len(rows) - top))


def _partly_idle(found: GpuReport, top: int) -> ReportTable:
    pods = found.partly_idle_pods()
    rows = [(*_named(each.pod), f"{each.idle} of {each.devices}", hours_text(each.gpu_hours)) for each in pods[:top]]
    columns = tuple(ReportColumn(name, number=False) for name in ("cluster", "namespace", "pod"))
    columns = (*columns, ReportColumn("idle devices"), ReportColumn("their GPU-hours"))
    empty = "No pod left some of its devices idle and used others."
    return ReportTable("Partly idle pods", columns, rows, empty, [], max(0, len(pods) - top))


def _pending(found: GpuReport, top: int) -> ReportTable:
    known = sorted(found.pending.items(), key=lambda row: (-row[1].device_hours, row[0]))
    waited = [(key, each) for key, each in known if each.pod_hours > 0]
    rows = [(*_named(key), hours_text(each.pod_hours), hours_text(each.device_hours)) for key, each in waited[:top]]
    named = (ReportColumn("cluster", number=False), ReportColumn("namespace", number=False))
    columns = (*named, ReportColumn("pod-hours pending"), ReportColumn("device-hours asked for"))
    return ReportTable("Pending", columns, rows, "No GPU pod was seen pending.", [], max(0, len(waited) - top))


def _energy(found: GpuReport) -> ReportTable:
    rows = [
        (cluster or NOTHING, f"{each.kwh:,.1f}", NOTHING if each.idle_share is None else f"{each.idle_share:.0%}")
        for cluster, each in sorted(found.energy.items())
    ]
    columns = (ReportColumn("cluster", number=False), ReportColumn("kWh"), ReportColumn("of that by idle GPUs"))
    note = "Of GPUs alone. Idle: less than 1 % busy, allocated or not."
    return ReportTable("Energy", columns, rows, "No energy is known.", [note])


def _enough(found: GpuReport, top: int) -> ReportTable:
    known = sorted(found.advice(), key=lambda each: (not each.device, not each.other_model, each.need.name))
    rows = []
    for each in known[:top]:
        need = each.need
        has = " ".join(filter(None, (need.model, need.profile)))
        other = f"{each.other_model} (by memory only)" if each.other_model else NOTHING
        rows.append((*_named(need.name), has, each.device or NOTHING, other, each.sharing or NOTHING, each.reason))
    titles = ("cluster", "namespace", "workload", "has", "would be enough", "other model", "sharing", "why")
    columns = tuple(ReportColumn(title, number=False) for title in titles)
    note = (
        f"Needs {NEEDED_HOURS:.0f} h of data and {NEEDED_COVERAGE:.0%} coverage; the day with the largest value counts."
    )
    empty = "No workload had a device alone."
    return ReportTable("What would be enough", columns, rows, empty, [note], max(0, len(known) - top))
