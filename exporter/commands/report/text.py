"""Writes tables as plain text, for files and for terminals without colors."""

from collections.abc import Iterable, Sequence

from exporter.commands.report.sections import ReportColumn, ReportTable
from exporter.commands.terminal import printable


def as_text(head: Sequence[str], tables: Iterable[ReportTable], notes: Sequence[str]) -> str:
    """Write a report."""
    lines = [*head]
    for table in tables:
        lines += ["", *table_lines(table)]
    lines += ["", *notes]
    return "".join(f"{printable(line)}\n" for line in lines)


def table_lines(table: ReportTable) -> Iterable[str]:
    """Write one table with its title and what to know about it."""
    yield table.title
    if table.rows:
        yield from (f"  {line}" for line in _aligned(table.columns, table.rows))
    else:
        yield f"  {table.empty}"
    if table.left_out:
        yield f"  and {table.left_out} more"
    yield from (f"  {note}" for note in table.notes)


def _aligned(columns: Sequence[ReportColumn], rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    cells = [tuple(column.title for column in columns), *(tuple(map(printable, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    headed = any(column.title for column in columns)
    for row in cells if headed else cells[1:]:
        aligned = (
            cell.rjust(width) if column.number else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        yield "  ".join(aligned).rstrip()
