"""Draws the report of `gpugauge doctor` on a terminal, with rich: colors, and texts wrapped in their column."""

from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from exporter.commands.doctor.lines import ScreenRow, conclusion, legend, rows, title
from exporter.node.doctor.finding import DoctorReport, FindingStatus

_STYLES = {
    FindingStatus.OK: "green",
    FindingStatus.NOTE: "yellow",
    FindingStatus.FAILED: "bold red",
    FindingStatus.SKIPPED: "dim",
}


def draw(report: DoctorReport, output: TextIO, width: int | None = None) -> None:
    """Write the screen; `width` is that of the terminal unless it is given."""
    console = Console(file=output, force_terminal=True, width=width, highlight=False)
    verdict, next_step = conclusion(report)
    # Text, not strings: rich would read [brackets] in those as markup.
    console.print(Text(title(report), "bold"))
    console.print(Text(legend(), "dim"))
    console.print(_table(report))
    console.print(Text(verdict, "bold green" if report.works else "bold red"))
    console.print(Text(next_step, "bold"))


def _table(report: DoctorReport) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for fixed in (True, True, True, False):
        table.add_column(no_wrap=fixed, overflow="fold")
    for row in rows(report):
        table.add_row(*_cells(row))
    return table


def _cells(row: ScreenRow) -> tuple[Text, ...]:
    style = _STYLES[FindingStatus(row.status)] if row.status else "dim"
    text_style = style if row.status in {"", "skipped"} else ""
    return Text(row.area, "bold"), Text(row.status, style), Text(row.check), Text(row.text, text_style)
