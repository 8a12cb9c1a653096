"""Writes a report as one HTML page: tables and bars, nothing from elsewhere, no script, and it prints."""

from collections.abc import Iterable, Sequence

from exporter import VERSION
from exporter.commands.report.charts import ChartBar, bars
from exporter.commands.report.ledger import LedgerRow, closing_error
from exporter.commands.report.report import GpuReport
from exporter.commands.report.sections import CLOSES_WITHIN, ReportTable, hours_text, share_text
from exporter.commands.report.usage import UsageSum
from exporter.status_page.html import shown

_BARS = 12
_STYLE = """
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:78rem;color:#1b1d20;background:#fff;font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0}
h2{font-size:1.1rem;margin:2rem 0 .4rem;break-after:avoid}
p{margin:.3rem 0;color:#565b62}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1rem 0}
.tiles div{border:1px solid #d5d9de;border-radius:.4rem;padding:.6rem .9rem;min-width:9rem}
.tiles b{display:block;font-size:1.35rem}
.tiles span{color:#565b62}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13px}
th,td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-bottom:1px solid #d5d9de}
th{color:#565b62;font-weight:600}
td{overflow-wrap:anywhere}
.n{text-align:right;white-space:nowrap}
th.n{white-space:normal}
tr{break-inside:avoid}
figure{margin:1rem 0;break-inside:avoid}
figcaption{font-weight:600}
svg{width:100%;min-width:38rem;margin-top:.5rem;font:13px system-ui,sans-serif}
footer{margin-top:2rem;border-top:1px solid #d5d9de;padding-top:.5rem}
@media print{body{padding:0;max-width:none;font-size:11px}table{font-size:9px}.wide{overflow:visible}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}@page{size:A4 landscape;margin:12mm}}
"""


def as_html(found: GpuReport, head: Sequence[str], tables: Iterable[ReportTable], notes: Sequence[str]) -> str:
    """Write the page. Every text of others is escaped."""
    body = [
        "<h1>GPU report</h1>",
        *(f"<p>{shown(line)}</p>" for line in head),
        _tiles(found),
        _fleet_bars(found),
        _workload_bars(found),
        *map(_section, tables),
        "<h2>How it is counted</h2>",
        *(f"<p>{shown(line)}</p>" for line in notes),
        f"<footer><p>gpugauge {shown(VERSION)}</p></footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>GPU report</title>"
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(filter(None, body)) + "\n</body></html>\n"
    )


def _tiles(found: GpuReport) -> str:
    total, rows = found.ledger.total, found.rows("cluster").values()
    used, observed = sum(row.used for row in rows), sum(row.observed for row in rows)
    tiles = [
        (hours_text(total.gpu_hours), "GPU-hours"),
        (share_text(total.hours.allocated, total.gpu_hours), "allocated"),
        (share_text(used, observed), "of the observed time busy"),
        (hours_text(observed - used), "GPU-hours wasted"),
    ]
    if found.currency:
        wasted = sum(row.wasted_cost for row in rows)
        tiles += [
            (f"{total.price_of_all:,.2f} {found.currency}", "price of all GPU-hours"),
            (f"{wasted:,.2f} {found.currency}", "of that wasted"),
        ]
    if found.energy:
        tiles.append((f"{sum(each.kwh for each in found.energy.values()):,.1f} kWh", "drawn by GPUs"))
    if total.gpu_hours:
        verdict = "closes" if closing_error(total) <= CLOSES_WITHIN else "does not close"
        tiles.append((verdict, f"sum of the states: {closing_error(total):.2%} apart"))
    drawn = (f"<div><b>{shown(value)}</b><span>{shown(text)}</span></div>" for value, text in tiles)
    return f'<div class="tiles">{"".join(drawn)}</div>'


def _fleet_bars(found: GpuReport) -> str:
    rows = sorted(found.ledger.rows.items(), key=lambda row: -row[1].gpu_hours)[:_BARS]
    drawn = [ChartBar(" ".join(filter(None, key)) or "GPUs", _states(row)) for key, row in rows]
    return bars("GPU-hours by state", drawn, "GPU-hours")


def _states(row: LedgerRow) -> Sequence[tuple[str, float]]:
    hours = row.hours
    return (
        ("busy", hours.busy),
        ("idle", hours.idle),
        ("shared", hours.shared),
        ("activity unknown", hours.activity_unknown),
        ("unallocated", hours.unallocated),
        ("stranded", hours.stranded),
        ("unhealthy", hours.unhealthy),
        ("unobserved", hours.unobserved),
    )


def _workload_bars(found: GpuReport) -> str:
    rows = list(found.rows("workload").items())[:_BARS]
    drawn = [ChartBar(f"{key[1]}/{key[2]}", _use(row)) for key, row in rows]
    return bars("Allocated GPU-hours of workloads", drawn, "GPU-hours")


def _use(row: UsageSum) -> Sequence[tuple[str, float]]:
    return ("used", row.used), ("wasted", row.wasted), ("not observed", max(0.0, row.hours - row.observed))


def _section(table: ReportTable) -> str:
    parts = [f"<h2>{shown(table.title)}</h2>"]
    if table.rows:
        parts.append(_table(table))
    else:
        parts.append(f"<p>{shown(table.empty)}</p>")
    if table.left_out:
        parts.append(f"<p>and {table.left_out} more</p>")
    return "".join([*parts, *(f"<p>{shown(note)}</p>" for note in table.notes)])


def _table(table: ReportTable) -> str:
    classes = [' class="n"' if column.number else "" for column in table.columns]
    titles = (column.title for column in table.columns)
    top = "".join(f"<th{each}>{shown(title)}</th>" for each, title in zip(classes, titles, strict=True))
    rows = (
        "".join(f"<td{each}>{shown(cell)}</td>" for each, cell in zip(classes, row, strict=True)) for row in table.rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
