"""Whether one raw value of the library is a value: by status, by the marks that mean "no value", and by age."""

from exporter.node.dcgm import layout
from exporter.node.devices.readings import Cell, RejectReason, WantedField

EVENT_SECONDS = 300.0
"""How long the last event (an XID) is shown: it is news, not a state."""
INFOROM_SECONDS = 120.0
"""The engine reads what the board keeps in its inforom every 30 s at most, whatever the interval."""
INFOROM_FIELDS = frozenset({*range(300, 347), *range(385, 397), 1507})
"""ECC counters, retired pages and remapped rows."""
LEAST_SECONDS = 5.0

_STATUS_REASONS: dict[int, RejectReason] = {
    layout.NOT_SUPPORTED: "not_supported",
    layout.FIELD_UNSUPPORTED: "not_supported",
    layout.UNKNOWN_FIELD: "not_supported",
    layout.PROFILING_NOT_SUPPORTED: "not_supported",
    layout.MODULE_NOT_LOADED: "not_supported",
    layout.NO_PERMISSION: "no_permission",
    layout.REQUIRES_ROOT: "no_permission",
    layout.INSTANCE_NOT_FOUND: "not_found",
    layout.COMPUTE_INSTANCE_NOT_FOUND: "not_found",
    layout.STALE_DATA: "stale",
}
_SILENT = frozenset({layout.GPU_LOST})
"""Statuses that are no news about the field: a lost board is reported as such."""
_MARKS: tuple[RejectReason, ...] = ("blank", "not_found", "not_supported", "no_permission")
_TEXT_MARKS: dict[str, RejectReason] = {
    layout.STRING_BLANK: "blank",
    layout.STRING_NOT_FOUND: "not_found",
    layout.STRING_NOT_SUPPORTED: "not_supported",
    layout.STRING_NO_PERMISSION: "no_permission",
}


def age_limit(wanted: WantedField, interval: float) -> float:
    """Seconds after which a value no longer tells how things are now."""
    if wanted.watch == "event":
        return max(3 * interval, EVENT_SECONDS)
    least = INFOROM_SECONDS if wanted.id in INFOROM_FIELDS else LEAST_SECONDS
    return max(3 * interval, least)


def number_reason(value: float, mark: float) -> RejectReason | None:
    """Why a raw number is no value, or None when it is one; `mark` is the lowest "no value" of its type."""
    if value != value:  # noqa: PLR0124 - the test for NaN
        return "blank"
    if value < mark:
        return None
    kind = value - mark
    return _MARKS[int(kind)] if kind in (1, 2, 3) else "blank"


def text_reason(text: str) -> RejectReason | None:
    """Why a text is no value, or None when it is one."""
    if text.startswith("<<<") and ">>>" in text:
        return _TEXT_MARKS.get(text, "blank")
    return None if text else "blank"


def status_reason(status: int) -> RejectReason | None:
    """Why a value with a status other than OK is not shown; None when that is no news about the field."""
    return None if status in _SILENT else _STATUS_REASONS.get(status, "blank")


def judge(value: float | str, wanted: WantedField) -> tuple[Cell, RejectReason | None]:
    """The value, or None and why: its own type decides which marks hold for it."""
    if isinstance(value, str):
        reason = text_reason(value) or (None if wanted.kind == "string" else "blank")
    else:
        reason = number_reason(value, layout.INT64_BLANK if isinstance(value, int) else layout.DOUBLE_BLANK)
        if reason is None and wanted.high is not None and value > wanted.high:
            reason = "out_of_range"
    return (value, None) if reason is None else (None, reason)
