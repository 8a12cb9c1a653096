"""`gpugauge check-config FILE`: what would be done with a file, row by row, without running anything.

In: a counters file, a configuration file or a web configuration file, told apart by their content. Out: a report.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from exporter import regular_file
from exporter.config import Arguments, ConfigError, ConfigFileError
from exporter.config_node import parse
from exporter.node.config_file import reader as config_file
from exporter.node.config_file.content import NodeConfigFile
from exporter.node.counters_watch import MAX_COUNTERS_BYTES
from exporter.node.devices.counters.computed_metrics import COMPUTED, HEALTH_STATUS
from exporter.node.devices.counters.counters_file import (
    CheckedRow,
    ComputedRow,
    CounterRow,
    Verdict,
    checked_rows,
    counters_of,
    decode,
    raw_rows,
)
from exporter.node.devices.counters.raw_row import RawRow
from exporter.node.devices.counters.watch_intervals import mismatches, pace_of
from exporter.node.devices.fields.field import fields_by_name
from exporter.node.nvml.reading.read_fields import read_fields
from exporter.regular_file import UnreadableFileError
from exporter.web import config_file as web_config_file
from exporter.web.live_settings import made_of
from exporter.web.tls import TlsError

SUGGESTED_ROWS = 20
"""For how many unknown fields near names are looked for: that takes some milliseconds each."""
OK, PROBLEMS, UNUSABLE = 0, 1, 2
"""Severities: everything is used as it is; something of it is not; the file cannot be used."""


@dataclass(frozen=True, slots=True)
class RowReport:
    """One row of a list of fields."""

    line: int
    name: str
    verdict: Verdict
    message: str = ""
    """Empty where nothing is wrong."""
    nearest: tuple[str, ...] = ()
    """Names of fields that an unknown one may have meant."""
    notes: tuple[str, ...] = ()
    """What the field needs that not every node has."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file."""

    file: str
    kind: str
    severity: int
    messages: tuple[str, ...] = ()
    """About the file as a whole."""
    rows: tuple[RowReport, ...] = ()


def check(arguments: Arguments) -> FileReport:
    """Check the file that is the operand. Raises ConfigError where there is not exactly one."""
    if len(arguments.operands) != 1:
        raise ConfigError("check-config needs one file; see gpugauge check-config --help")
    file = str(arguments.operands[0])
    try:
        text = decode(regular_file.read(Path(file), MAX_COUNTERS_BYTES))
    except UnreadableFileError as error:
        return FileReport(file, "file", UNUSABLE, (f"{file}: cannot be read: {error}",))
    kind = _kind(text, file)
    try:
        return _CHECKS[kind](file, text)
    except (ConfigError, TlsError) as error:
        return FileReport(file, kind, UNUSABLE, (str(error),))


def report(checked: FileReport, *, as_json: bool) -> str:
    """Write a report as text or JSON."""
    verdict = ("ok", "problems", "unusable")[checked.severity]
    if as_json:
        body = {key: value for key, value in asdict(checked).items() if key != "severity"}
        return json.dumps(body | {"verdict": verdict}, indent=2) + "\n"
    lines = [*(_line(row) for row in checked.rows), *checked.messages]
    used = sum(row.verdict in (Verdict.OK, Verdict.NOT_READ) for row in checked.rows)
    counted = f", {used} of {len(checked.rows)} rows can be used" if checked.rows else ""
    return "\n".join([*lines, f"{checked.file}: {checked.kind}: {verdict}{counted}"]) + "\n"


def _line(row: RowReport) -> str:
    nearest = (f"nearest: {', '.join(row.nearest)}",) if row.nearest else ()
    words = "; ".join(filter(None, (row.message or row.name, *nearest, *row.notes)))
    return f"line {row.line}: {row.verdict}: {words}"


def _kind(text: str, file: str) -> str:
    """What a file is: YAML is told apart by its first keys, and everything else is a counters file."""
    try:
        keys = {entry.key for entry in parse(text, Path(file)).entries()}
    except ConfigFileError:
        keys = set()
    if keys & set(web_config_file.SECTIONS):
        return "web configuration file"
    if keys & {"version", "metrics", "collection", "collections"}:
        return "configuration file"
    return "counters file"


def _counters(file: str, text: str) -> FileReport:
    rows = _rows(raw_rows(text, file))
    return FileReport(file, "counters file", _severity(rows), () if rows else (f"{file}: it has no row",), rows)


def _configuration(file: str, _text: str) -> FileReport:
    config = config_file.load(Path(file))
    messages = [*config.warnings, *_mismatches(config)]
    if config.fields is None:
        named = f"; its counters file is {config.counters_file}" if config.counters_file else ""
        return FileReport(file, "configuration file", OK, (*messages, f"it lists no fields{named}"))
    rows = _rows(config.fields.rows)
    return FileReport(file, "configuration file", _severity(rows), tuple(messages), rows)


def _mismatches(config: NodeConfigFile) -> Iterable[str]:
    if config.fields is None:
        return ()
    return mismatches(pace_of(1.0, config.groups), counters_of(config.fields.rows, config.fields.file))


def _web(file: str, _text: str) -> FileReport:
    config = web_config_file.load(Path(file))
    made_of(config)  # reads certificates and keys
    return FileReport(file, "web configuration file", OK, config.warnings)


_CHECKS: dict[str, Callable[[str, str], FileReport]] = {
    "counters file": _counters,
    "configuration file": _configuration,
    "web configuration file": _web,
}


def _severity(rows: Sequence[RowReport]) -> int:
    used = [row for row in rows if row.verdict in (Verdict.OK, Verdict.NOT_READ)]
    if not used:
        return UNUSABLE
    return OK if all(row.verdict is Verdict.OK for row in rows) else PROBLEMS


def _rows(raws: Iterable[RawRow]) -> tuple[RowReport, ...]:
    checked = tuple(checked_rows(raws))
    unknown = [row for row in checked if row.verdict is Verdict.UNKNOWN_FIELD][:SUGGESTED_ROWS]
    suggested = {row.raw: _nearest(row.raw.name) for row in unknown}
    return tuple(replace(_row(row), nearest=suggested.get(row.raw, ())) for row in checked)


def _row(row: CheckedRow) -> RowReport:
    return RowReport(row.raw.line, row.raw.name, row.verdict, row.problem, notes=_notes(row.used))


def _nearest(name: str) -> tuple[str, ...]:
    known = [*fields_by_name(), *COMPUTED]
    return tuple(get_close_matches(name, known, cutoff=0.75) or get_close_matches(name.upper(), known, cutoff=0.75))


def _notes(row: CounterRow | ComputedRow | None) -> tuple[str, ...]:
    if isinstance(row, ComputedRow):
        return ("not with NVML",) if HEALTH_STATUS in row.metric.fields else ()
    if row is None or not row.field.is_read:
        return ()
    if row.field.scope == "vgpu":
        return ("only with NVML",) if row.field.id in read_fields() else ("from no source",)
    profiling = ("needs profiling",) if row.field.watch == "profiling" else ()
    return profiling if row.field.id in read_fields() else (*profiling, "not with NVML")
