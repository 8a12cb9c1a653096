"""Checks of the configuration: flags, the counters file, and which of its fields have no value here."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from exporter.node.counters_source import counters_name
from exporter.node.counters_watch import UnusableCountersError
from exporter.node.devices.readings.readings import RejectionReason, with_unread_fields
from exporter.node.devices.series.metrics import field_names
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, limited, note, ok, skipped
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.doctor.sources import NO_READINGS

SHOWN_ROWS, SHOWN_FIELDS = 3, 4
_TO_MEND = frozenset({RejectionReason.NO_PERMISSION})
"""Why a field has no value although the device measures it: the others are what the hardware does not have, or pass."""


def _flags(examination: Examination) -> Iterable[Finding]:
    warnings = examination.config.warnings
    return [note(warning, DoctorReason.CONFIGURATION) for warning in warnings] or [ok("all are used as given")]


def _file(examination: Examination) -> Iterator[Finding]:
    counters = examination.counters
    if isinstance(counters, UnusableCountersError):
        yield failed(DoctorReason.COUNTERS_UNUSABLE, str(counters))
        return
    found = counters.counters
    if found.problems:
        yield failed(DoctorReason.COUNTERS_ROWS_REJECTED, _some(found.problems, SHOWN_ROWS))
    if found.unread:
        yield note(_some(found.unread, SHOWN_ROWS), DoctorReason.FIELDS_NOT_READ)
    if not found.problems:
        yield ok(f"{found.usable} rows of {counters_name(examination.config)} can be used")


def _fields(examination: Examination) -> Iterable[Finding]:
    """By reason: the fields that have no value, and on how many devices."""
    counters = examination.usable_counters
    if examination.readings is None or not counters.usable:
        return [skipped(NO_READINGS if counters.usable else "no row of the counters file can be used")]
    readings, names = with_unread_fields(examination.readings, counters.not_of_devices), field_names(counters)
    by_reason: dict[RejectionReason, list[str]] = defaultdict(list)
    for each in readings.rejections:
        if each.field in names:
            by_reason[each.reason].append(f"{names[each.field]} on {each.count}")
    findings = [
        limited(reason, _some(found, SHOWN_FIELDS, ", "), works=reason not in _TO_MEND)
        for reason, found in sorted(by_reason.items())
    ]
    return findings or [ok(f"all {len(counters.fields)} fields have values")]


def _some(texts: Sequence[str], most: int, between: str = "; ") -> str:
    more = f"{between}and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


CHECKS = (
    Check("configuration", "flags and variables", _flags),
    Check("configuration", "counters file", _file),
    Check("configuration", "fields", _fields),
)
