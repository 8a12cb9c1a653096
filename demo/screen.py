"""Draws what the demo shows on a terminal, with rich: tables of GPUs and alerts, and addresses."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from alerts.recorded.thresholds import LOW_UTILIZATION
from demo.view import AlertRow, DemoView, DeviceRow, percent

LOW, HIGH = LOW_UTILIZATION, 0.70
"""Below LOW a bar is red, below HIGH yellow."""
BAR_WIDTH = 12


def _gauge(ratio: float | None) -> Text:
    if ratio is None:
        return Text(percent(None), "dim")
    filled = round(min(max(ratio, 0.0), 1.0) * BAR_WIDTH)
    style = "red" if ratio < LOW else "yellow" if ratio < HIGH else "green"
    return Text("█" * filled, style) + Text("░" * (BAR_WIDTH - filled), "dim") + Text(f" {percent(ratio):>4}")


def draw(view: DemoView, urls: Sequence[tuple[str, str]]) -> RenderableType:
    """Draw the view once."""
    addresses = Text("\n").join(Text(f"{name:<14}") + Text(url, "cyan") for name, url in urls)
    return Group(
        _devices(view.devices),
        _alerts(view.alerts),
        Panel(addresses, title="Addresses to open; Ctrl-C ends everything"),
    )


def _devices(rows: Sequence[DeviceRow]) -> Table:
    table = Table(title="GPUs (simulated)", expand=True, header_style="bold")
    for name in ("node", "GPU", "model", "workload", "busy", "tensor", "memory"):
        table.add_column(name, no_wrap=name != "workload")
    previous = ""
    for row in rows:
        if row.node != previous and previous:
            table.add_section()
        table.add_row(
            "" if row.node == previous else row.node,
            row.name,
            row.model,
            row.workloads or Text(row.workloads_or_state, "dim"),
            _gauge(row.busy) if row.workloads else Text(percent(row.busy), "dim"),
            percent(row.tensor),
            percent(row.memory),
        )
        previous = row.node
    return table


def _alerts(rows: Sequence[AlertRow]) -> Table:
    table = Table(title="Alerts in Alertmanager", expand=True, header_style="bold")
    for name, width in (("alert", 20), ("subject", 22), ("description", None)):
        table.add_column(name, width=width)
    for row in rows:
        table.add_row(Text(row.name, "bold red"), row.subject, row.text)
    if not rows:
        table.add_row(Text("none yet", "dim"), "", "")
    return table
