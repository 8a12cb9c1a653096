"""Draws a report on a terminal, with rich: tables that fit its width, and how far the queries are."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from exporter.commands.report.sections import ReportTable
from exporter.commands.terminal import printable


def draw(
    head: Sequence[str],
    tables: Sequence[ReportTable],
    notes: Sequence[str],
    output: TextIO,
    width: int | None = None,
) -> None:
    """Write the screen; `width` is that of the terminal unless it is given."""
    console = Console(file=output, force_terminal=True, width=width, highlight=False)
    # Text, not strings: rich would read [brackets] in those as markup.
    for line in head:
        console.print(Text(printable(line), "bold"))
    for table in tables:
        console.print()
        console.print(Text(table.title, "bold"))
        console.print(_table(table) if table.rows else Text(table.empty, "dim"))
        more = [f"and {table.left_out} more"] if table.left_out else []
        for note in (*more, *table.notes):
            console.print(Text(printable(note), "dim"))
    console.print()
    for line in notes:
        console.print(Text(printable(line), "dim"))


def _table(found: ReportTable) -> Table:
    headed = any(column.title for column in found.columns)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False, show_header=headed)
    for column in found.columns:
        table.add_column(column.title, justify="right" if column.number else "left", overflow="fold")
    for row in found.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


@contextmanager
def progress(queries: int, errors: TextIO | None = None) -> Iterator[Callable[[], None]]:
    """Show how many queries are answered, on the terminal of error messages. Yields what is called after each."""
    console = Console(file=errors or sys.stderr, force_terminal=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("asking Prometheus", total=queries)
        yield lambda: bar.advance(task)
