"""The counters file: which fields are exposed, under which name, type and help text.

The grammar is dcgm-exporter's CSV (name, type, help), read more generously: comments may be indented, help
texts may hold commas, quotes may follow a blank. A row that cannot be used costs only itself.
"""

from dataclasses import dataclass
from typing import Literal

from exporter.node.devices.field import Field, fields_by_name

TYPES = ("gauge", "counter", "untyped", "label")
COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Counter:
    """One row: `name` is the spelling in the file and so the name on the page."""

    name: str
    type: Literal["gauge", "counter", "untyped", "label"]
    help: str
    field: Field


@dataclass(frozen=True, slots=True)
class Counters:
    """A file as far as it could be used; `problems` holds one sentence for each row that could not."""

    rows: tuple[Counter, ...]
    problems: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The distinct fields asked for, in the order of the file."""
        return tuple({row.field.id: row.field for row in self.rows}.values())


class _RowError(Exception):
    """Why one row cannot be used."""


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text


def _counter(line: str) -> Counter:
    cells = [_unquote(cell) for cell in line.split(",", COLUMNS - 1)]
    if len(cells) < COLUMNS:
        raise _RowError(f"expected 'name, type, help', found {line.strip()!r}")
    name, type_, help_ = cells
    field = fields_by_name().get(name)
    if field is None:
        raise _RowError(f"unknown field {name!r}")
    kind = type_.lower()
    if kind not in TYPES:
        raise _RowError(f"type {type_!r} of {name} is not one of {', '.join(TYPES)}")
    if field.kind == "string" and kind != "label":
        raise _RowError(f"{name} is text and can only be a label, not a {kind}")
    return Counter(name, kind, help_, field)  # type: ignore[arg-type] # kind is one of TYPES


def parse(text: str, file: str) -> Counters:
    """Read a counters file's text; `file` only names it in sentences."""
    rows: dict[str, Counter] = {}
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
