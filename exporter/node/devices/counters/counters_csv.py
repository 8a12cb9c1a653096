"""Reads the rows of a counters file in CSV: name, type, help. No I/O, no state.

The format is dcgm-exporter's, which reads it with Go's encoding/csv. More is allowed here: comments may be indented,
help texts may contain commas, quotes may follow a blank.
"""

import re
from collections.abc import Iterator

from exporter.node.devices.counters.raw_row import RawRow, shown

_QUOTED = r'[^\S\n]*+"(?:[^"]|"")*+"[^\S\n]*+'
"""A column in quotes, which may contain commas and line breaks; a quote in it is written twice."""
_COLUMN = rf"({_QUOTED}|[^,\n]*+)"
_ROW = re.compile(
    rf"[^\S\n]*+#[^\n]*+"  # a comment
    rf"|{_COLUMN},{_COLUMN},({_QUOTED}(?=\n|\Z)|[^\n]*+)"
    rf"|[^\n]*+"  # fewer than three columns: no group matches
)
"""One row. As in Go, only a line feed ends it, and none does in a quoted column."""
_UNCLOSED = re.compile(r'"(?:[^"]|"")*+\Z')
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""The bytes that are not UTF-8, as the error handler `surrogateescape` decodes them."""


class _NoRowError(Exception):
    """Why the text of one row has no three columns."""


def rows(text: str) -> Iterator[RawRow]:
    """The rows that are neither blank nor a comment."""
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    line, position = 1, 0
    while position <= len(text) and (row := _ROW.match(text, position)):
        if row[0].strip() and not row[0].lstrip().startswith("#"):
            yield _raw(line, row)
        line += row[0].count("\n") + 1
        position = row.end() + 1


def _raw(line: int, row: re.Match[str]) -> RawRow:
    try:
        return RawRow(line, *_columns(row))
    except _NoRowError as problem:
        return RawRow(line, problem=str(problem))


def _columns(row: re.Match[str]) -> tuple[str, str, str]:
    if _NOT_UTF8.search(row[0]):
        raise _NoRowError(f"not UTF-8: {shown(row[0].strip())}")
    if row[3] is None:
        raise _NoRowError(f"expected 'name, type, help', found {shown(row[0].strip())}")
    name, type_, help_ = (_unquoted(column) for column in row.groups())
    return name, type_, help_


def _unquoted(column: str) -> str:
    text = column.strip()
    if _UNCLOSED.match(text):
        raise _NoRowError(f"a quote is not closed in {shown(text)}")
    if re.fullmatch(_QUOTED, text):
        return text[1:-1].replace('""', '"').strip()
    return text
