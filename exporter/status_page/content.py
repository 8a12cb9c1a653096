"""What a status page says, as plain texts: facts and tables. Only `html.py` writes HTML, and escapes all of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

MAX_ROWS = 200
"""How many rows of a table are written, whatever the size of the node or the cluster."""


class Mark(StrEnum):
    """How a text is emphasized. The text says the same in words, for who does not see colors."""

    NONE = "none"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table, or one fact."""

    lines: tuple[str, ...]
    note: str = ""
    """Further words, written smaller."""
    ratio: float | None = None
    """0 to 1: drawn as a bar beside the text."""
    mark: Mark = Mark.NONE


@dataclass(frozen=True, slots=True)
class StatusTable:
    """A table with its title; a column without a value has a cell that says so."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str
    """Written in place of a table without rows."""
    about: str = ""
    more: int = 0
    """How many rows are left out."""


@dataclass(frozen=True, slots=True)
class StatusPage:
    """A whole page."""

    facts: tuple[tuple[str, Cell], ...]
    """Name and value."""
    tables: tuple[StatusTable, ...]


def text(*lines: str, note: str = "", mark: Mark = Mark.NONE) -> Cell:
    """A cell with these lines."""
    return Cell(lines, note, mark=mark)


def absent(why: str = "") -> Cell:
    """A value that is not there, and why as far as that is known."""
    return Cell(("\N{EN DASH}",), why)


def table(
    title: str, columns: tuple[str, ...], rows: Sequence[tuple[Cell, ...]], empty: str, about: str = ""
) -> StatusTable:
    """A table with the first `MAX_ROWS` of these rows."""
    return table_of(title, columns, rows, lambda row: row, empty, about)


def table_of(
    title: str,
    columns: tuple[str, ...],
    items: Sequence[T],
    row: Callable[[T], tuple[Cell, ...]],
    empty: str,
    about: str = "",
) -> StatusTable:
    """A table with a row for each of the first `MAX_ROWS` items; no other row is made."""
    rows = tuple(row(each) for each in items[:MAX_ROWS])
    return StatusTable(title, columns, rows, empty, about, len(items) - len(rows))
