"""Parses the counters file: which fields are exposed, under which name, type and help text. No I/O, no state.

The format is dcgm-exporter's CSV (name, type, help), which that reads with Go's encoding/csv. More is allowed here:
comments may be indented, help texts may contain commas, quotes may follow a blank. The result is `Counters`: the rows
that can be used, and a message for each row that cannot.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from exporter.node.devices.computed_metrics import (
    ALWAYS_READ,
    COMPUTED,
    HEALTH_STATUS,
    READ_BY_CALLS,
    ComputedMetric,
)
from exporter.node.devices.device_source import DEVICE_SCOPES, WantedField
from exporter.node.devices.field import NOT_READ, Field, fields, fields_by_name

RowType = Literal["gauge", "counter", "untyped", "label"]
TYPES: tuple[RowType, ...] = get_args(RowType)
SHOWN = 80
"""How many characters of a value a message shows."""

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


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One row. `name` is the metric's name as the file spells it; a field may have several spellings."""

    name: str
    type: RowType
    help: str
    field: Field


@dataclass(frozen=True, slots=True)
class ComputedRow:
    """One row that names a metric which is computed here (`DCGM_EXP_…`) and not read."""

    name: str
    help: str
    metric: ComputedMetric


@dataclass(frozen=True, slots=True)
class Counters:
    """The rows of a file that can be used."""

    rows: tuple[CounterRow, ...]
    problems: tuple[str, ...]
    """One message for each row that cannot be used."""
    unread: tuple[str, ...] = ()
    """One message for each row that can be used but has no values, because no source reads its field."""
    computed: tuple[ComputedRow, ...] = ()

    @property
    def usable(self) -> int:
        """How many rows can be used."""
        return len(self.rows) + len(self.computed)

    @property
    def sample_rows(self) -> tuple[CounterRow, ...]:
        """The rows that become metric families."""
        return tuple(row for row in self.rows if row.type != "label")

    @property
    def label_rows(self) -> tuple[CounterRow, ...]:
        """The rows whose values become labels of every DCGM-named series."""
        return tuple(row for row in self.rows if row.type == "label")

    @property
    def fields(self) -> tuple[Field, ...]:
        """The distinct fields that are read, in the order of the file."""
        return tuple({row.field.id: row.field for row in self.rows if row.field.is_read}.values())

    @property
    def not_of_devices(self) -> tuple[int, ...]:
        """The ids of the distinct fields that no source reads, or not every source: those of links and components."""
        rows = (row for row in self.rows if row.field.scope not in DEVICE_SCOPES or not row.field.is_read)
        return tuple(dict.fromkeys(row.field.id for row in rows))

    @property
    def wanted(self) -> tuple[WantedField, ...]:
        """What a source has to read: the fields of the rows, and what computed metrics need. Nothing without rows."""
        if not self.usable:
            return ()
        needed = (*(field for row in self.computed for field in row.metric.fields), *ALWAYS_READ)
        wanted = {field.id: field.wanted() for field in self.fields}
        wanted |= {number: READ_BY_CALLS.get(number) or fields()[number].wanted() for number in needed}
        return tuple(wanted.values())

    @property
    def need_health(self) -> bool:
        """Whether the health checks of the GPUs are asked for."""
        return any(HEALTH_STATUS in row.metric.fields for row in self.computed)


class _RowError(Exception):
    """Why one row cannot be used."""


def _shown(value: str) -> str:
    """The value in quotes on one line, shortened; a byte that is not UTF-8 is written in hexadecimal."""
    short = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
    return re.sub(r"\\udc([89a-f][0-9a-f])", r"\\x\1", repr(short))


def _unquoted(column: str) -> str:
    text = column.strip()
    if _UNCLOSED.match(text):
        raise _RowError(f"a quote is not closed in {_shown(text)}")
    if re.fullmatch(_QUOTED, text):
        return text[1:-1].replace('""', '"').strip()
    return text


def _rows(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The rows that are neither blank nor a comment, each with the number of its first line."""
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    line, position = 1, 0
    while position <= len(text) and (row := _ROW.match(text, position)):
        if row[0].strip() and not row[0].lstrip().startswith("#"):
            yield line, row
        line += row[0].count("\n") + 1
        position = row.end() + 1


def _counter(row: re.Match[str]) -> CounterRow | ComputedRow:
    if _NOT_UTF8.search(row[0]):
        raise _RowError(f"not UTF-8: {_shown(row[0].strip())}")
    if row[3] is None:
        raise _RowError(f"expected 'name, type, help', found {_shown(row[0].strip())}")
    name, type_, help_ = (_unquoted(column) for column in row.groups())
    computed, field = COMPUTED.get(name), fields_by_name().get(name)
    if computed is None and field is None:
        raise _RowError(f"unknown field {_shown(name)}")
    kind = type_.lower()
    if kind not in TYPES:
        raise _RowError(f"type {_shown(type_)} of {name} is not one of {', '.join(TYPES)}")
    if field is None:
        if kind == "label":
            raise _RowError(f"{name} is computed and cannot be a label")
        return ComputedRow(name, help_, COMPUTED[name])
    if field.kind == "binary":
        raise _RowError(f"{name} is a structure and cannot be exposed")
    if field.kind == "string" and kind != "label":
        raise _RowError(f"{name} is text and can only be a label, not a {kind}")
    return CounterRow(name, kind, help_, field)


def decode(content: bytes) -> str:
    """Decode a counters file for `parse`, which rejects the rows with bytes that are not UTF-8."""
    return content.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")


def parse(text: str, file: str) -> Counters:
    """Parse a counters file's text. `file` is its name in messages."""
    rows: dict[str, CounterRow | ComputedRow] = {}
    problems: list[str] = []
    unread: list[str] = []
    for number, row in _rows(text):
        try:
            counter = _counter(row)
            if counter.name in rows:
                raise _RowError(f"{counter.name} is listed twice; the first row counts")
        except _RowError as problem:
            problems.append(f"{file}, line {number}: {problem}")
            continue
        rows[counter.name] = counter
        if isinstance(counter, CounterRow) and not counter.field.is_read:
            entity = NOT_READ[counter.field.scope]
            unread.append(f"{file}, line {number}: {counter.name} is a field of one {entity}, of which none is read")
    read = tuple(row for row in rows.values() if isinstance(row, CounterRow))
    computed = tuple(row for row in rows.values() if isinstance(row, ComputedRow))
    return Counters(read, tuple(problems), tuple(unread), computed)
