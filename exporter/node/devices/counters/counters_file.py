"""Parses the counters file: which fields are exposed, under which name, type and help text. No I/O, no state.

The format is CSV (`counters_csv.py`) or YAML (`counters_yaml.py`). The result is `Counters`: the rows that can be used,
and a message for each row that cannot.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, get_args

from exporter.node.devices.counters import counters_csv
from exporter.node.devices.counters.computed_metrics import (
    ALWAYS_READ,
    COMPUTED,
    HEALTH_STATUS,
    READ_BY_CALLS,
    ComputedMetric,
)
from exporter.node.devices.counters.raw_row import RawRow, shown
from exporter.node.devices.fields.device_source import DEVICE_SCOPES, WantedField
from exporter.node.devices.fields.field import NOT_READ, Field, fields, fields_by_name

RowType = Literal["gauge", "counter", "untyped", "label"]
TYPES: tuple[RowType, ...] = get_args(RowType)
_YAML_BEGINS = re.compile(r"(?:[^\S\n]*+(?:#[^\n]*+)?\n)*+(?:---\s|fields[^\S\n]*:|-\s)")
"""No row of CSV begins like that: it would have no comma after its name."""


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
        """The ids of the distinct fields that no source reads, or not every source: of links, vGPUs, components."""
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


class Verdict(StrEnum):
    """What was found about a row."""

    OK = "ok"
    NOT_READ = "not_read"
    """It can be used and has no values: its field is one of an entity that no source reads."""
    MALFORMED = "malformed"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    """The row has a type that there is not, or that a value of the field cannot have."""
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row of the file with what was found about it."""

    raw: RawRow
    used: CounterRow | ComputedRow | None
    """None where the row cannot be used."""
    verdict: Verdict = Verdict.OK
    problem: str = ""
    """Why it cannot be used, or why a row that can be used has no values; empty where neither."""


class _RowError(Exception):
    """Why one row cannot be used."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


def is_yaml(text: str, file: str) -> bool:
    """Whether it is YAML: by the ending of its name, else by its first line that is neither blank nor a comment."""
    return file.endswith((".yaml", ".yml")) or (not file.endswith(".csv") and _YAML_BEGINS.match(text) is not None)


def raw_rows(text: str, file: str) -> Iterable[RawRow]:
    """The rows of a counters file's text. Raises ConfigFileError for a text that is YAML but no list of fields."""
    if not is_yaml(text, file):
        return counters_csv.rows(text)
    from exporter.node.devices.counters import counters_yaml  # noqa: PLC0415 - a YAML reader, which few nodes need

    return counters_yaml.rows(text, file)


def checked_rows(raws: Iterable[RawRow]) -> Iterator[CheckedRow]:
    """Check each row; the first one of a name counts."""
    names: set[str] = set()
    for raw in raws:
        try:
            row = _counter(raw)
            if row.name in names:
                raise _RowError(Verdict.DUPLICATE, f"{row.name} is listed twice; the first row counts")
        except _RowError as problem:
            yield CheckedRow(raw, None, problem.verdict, str(problem))
            continue
        names.add(row.name)
        unread = _without_values(row)
        yield CheckedRow(raw, row, Verdict.NOT_READ if unread else Verdict.OK, unread)


def counters_of(raws: Iterable[RawRow], file: str) -> Counters:
    """The counters of these rows. `file` is the file's name in messages."""
    checked = tuple(checked_rows(raws))
    used = [each.used for each in checked if each.used is not None]
    return Counters(
        rows=tuple(row for row in used if isinstance(row, CounterRow)),
        problems=_messages(file, (each for each in checked if each.used is None)),
        unread=_messages(file, (each for each in checked if each.used is not None and each.problem)),
        computed=tuple(row for row in used if isinstance(row, ComputedRow)),
    )


def parse(text: str, file: str) -> Counters:
    """Parse a counters file's text. `file` is its name in messages. Raises ConfigFileError as `raw_rows` does."""
    return counters_of(raw_rows(text, file), file)


def decode(content: bytes) -> str:
    """Decode a counters file for `parse`, which rejects the rows with bytes that are not UTF-8."""
    return content.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")


def _messages(file: str, rows: Iterable[CheckedRow]) -> tuple[str, ...]:
    return tuple(f"{file}, line {row.raw.line}: {row.problem}" for row in rows)


def _without_values(row: CounterRow | ComputedRow) -> str:
    if isinstance(row, ComputedRow) or row.field.is_read:
        return ""
    return f"{row.name} is a field of one {NOT_READ[row.field.scope]}, of which none is read"


def _counter(raw: RawRow) -> CounterRow | ComputedRow:
    if raw.problem:
        raise _RowError(Verdict.MALFORMED, raw.problem)
    computed, field = COMPUTED.get(raw.name), fields_by_name().get(raw.name)
    if computed is None and field is None:
        raise _RowError(Verdict.UNKNOWN_FIELD, f"unknown field {shown(raw.name)}")
    kind = raw.type.lower()
    if kind not in TYPES:
        raise _RowError(Verdict.WRONG_TYPE, f"type {shown(raw.type)} of {raw.name} is not one of {', '.join(TYPES)}")
    if field is None:
        if kind == "label":
            raise _RowError(Verdict.WRONG_TYPE, f"{raw.name} is computed and cannot be a label")
        return ComputedRow(raw.name, raw.help, COMPUTED[raw.name])
    if field.kind == "binary":
        raise _RowError(Verdict.WRONG_TYPE, f"{raw.name} is a structure and cannot be exposed")
    if field.kind == "string" and kind != "label":
        raise _RowError(Verdict.WRONG_TYPE, f"{raw.name} is text and can only be a label, not a {kind}")
    return CounterRow(raw.name, kind, raw.help, field)
