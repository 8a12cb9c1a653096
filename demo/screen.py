"""The demo's picture on a terminal, drawn with rich."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from demo.view import Picture, percent

LOW, HIGH = 0.30, 0.70
BAR = 12


def _gauge(ratio: float | None) -> Text:
    if ratio is None:
        return Text(percent(None), "dim")
    filled = round(min(max(ratio, 0.0), 1.0) * BAR)
    style = "red" if ratio < LOW else "yellow" if ratio < HIGH else "green"
    return Text("█" * filled, style) + Text("░" * (BAR - filled), "dim") + Text(f" {percent(ratio):>4}")


def draw(picture: Picture, urls: Sequence[tuple[str, str]]) -> RenderableType:
    """One frame."""
    gpus = Table(title="GPUs (simulated)", expand=True, header_style="bold")
    for name in ("node", "GPU", "model", "owner", "busy", "tensor", "memory"):
        gpus.add_column(name, no_wrap=name != "owner")
    previous = ""
    for row in picture.gpus:
        if row.node != previous and previous:
            gpus.add_section()
        gpus.add_row(
            "" if row.node == previous else row.node,
            row.gpu,
            row.model,
            row.owners or Text("divided" if row.divided else "free", "dim"),
            _gauge(row.busy) if row.owners else Text(percent(row.busy), "dim"),
            percent(row.tensor),
            percent(row.memory),
        )
        previous = row.node
    alerts = Table(title="Alerts in Alertmanager", expand=True, header_style="bold")
    for name, width in (("alert", 20), ("of", 22), ("what it says", None)):
        alerts.add_column(name, width=width)
    for alert in picture.alerts:
        alerts.add_row(Text(alert.name, "bold red"), alert.subject, alert.text)
    if not picture.alerts:
        alerts.add_row(Text("none yet", "dim"), "", "")
    where = Text("\n").join(Text(f"{name:<14}") + Text(url, "cyan") for name, url in urls)
    return Group(gpus, alerts, Panel(where, title="Look here; Ctrl-C ends everything"))
