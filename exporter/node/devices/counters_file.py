"""Parses the counters file: which fields are exposed, under which name, type and help text. No I/O, no state.

The format is dcgm-exporter's CSV (name, type, help), with more allowed: comments may be indented, help texts may
contain commas, quotes may follow a blank. The result is `Counters`: the rows that can be used, and a message for each
row that cannot.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from exporter.node.devices.field import Field, fields_by_name

RowType = Literal["gauge", "counter", "untyped", "label"]
TYPES: tuple[RowType, ...] = get_args(RowType)
COLUMNS = 3


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One row. `name` is the metric's name as the file spells it; a field may have several spellings."""

    name: str
    type: RowType
    help: str
    field: Field


@dataclass(frozen=True, slots=True)
class Counters:
    """The rows of a file that can be used; `problems` has one message for each row that cannot."""

    rows: tuple[CounterRow, ...]
    problems: tuple[str, ...]

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
        """The distinct fields of the rows, in the order of the file."""
        return tuple({row.field.id: row.field for row in self.rows}.values())


class _RowError(Exception):
    """Why one row cannot be used."""


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text


def _counter(line: str) -> CounterRow:
    columns = [_unquote(column) for column in line.split(",", COLUMNS - 1)]
    if len(columns) < COLUMNS:
        raise _RowError(f"expected 'name, type, help', found {line.strip()!r}")
    name, type_, help_ = columns
    field = fields_by_name().get(name)
    if field is None:
        raise _RowError(f"unknown field {name!r}")
    kind = type_.lower()
    if kind not in TYPES:
        raise _RowError(f"type {type_!r} of {name} is not one of {', '.join(TYPES)}")
    if field.kind == "string" and kind != "label":
        raise _RowError(f"{name} is text and can only be a label, not a {kind}")
    return CounterRow(name, kind, help_, field)


def parse(text: str, file: str) -> Counters:
    """Parse a counters file's text. `file` is its name in messages."""
    rows: dict[str, CounterRow] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            counter = _counter(line)
            if counter.name in rows:
                raise _RowError(f"{counter.name} is listed twice; the first row counts")
        except _RowError as problem:
            problems.append(f"{file}, line {number}: {problem}")
            continue
        rows[counter.name] = counter
    return Counters(tuple(rows.values()), tuple(problems))
