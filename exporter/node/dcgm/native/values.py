"""Decides whether a raw value of libdcgm is exposed, and if not, why: by its status, type and range, or as blank.

No I/O, no state. A blank value is a number or text with which DCGM states that there is no value.
"""

from exporter.node.dcgm.native import layout
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.validity import checked
from exporter.node.devices.readings.readings import RejectionReason, SampleValue

_STATUS_REASONS: dict[int, RejectionReason] = {
    layout.NOT_SUPPORTED: RejectionReason.NOT_SUPPORTED,
    layout.FIELD_UNSUPPORTED: RejectionReason.NOT_SUPPORTED,
    layout.UNKNOWN_FIELD: RejectionReason.NOT_SUPPORTED,
    layout.PROFILING_NOT_SUPPORTED: RejectionReason.NOT_SUPPORTED,
    layout.MODULE_NOT_LOADED: RejectionReason.NOT_SUPPORTED,
    layout.NO_PERMISSION: RejectionReason.NO_PERMISSION,
    layout.REQUIRES_ROOT: RejectionReason.NO_PERMISSION,
    layout.INSTANCE_NOT_FOUND: RejectionReason.NOT_FOUND,
    layout.COMPUTE_INSTANCE_NOT_FOUND: RejectionReason.NOT_FOUND,
    layout.STALE_DATA: RejectionReason.STALE,
}
_NOT_ABOUT_THE_FIELD = frozenset({layout.GPU_LOST})
"""Statuses that are not counted as rejections: a lost GPU is reported as such, not once per field."""
_BLANKS: tuple[RejectionReason, ...] = (
    RejectionReason.BLANK,
    RejectionReason.NOT_FOUND,
    RejectionReason.NOT_SUPPORTED,
    RejectionReason.NO_PERMISSION,
)
"""Why a number is blank, by how far it is above the lowest blank value of its type: 0 to 3 (dcgmvalue.h)."""
_TEXT_BLANKS: dict[str, RejectionReason] = {
    layout.STRING_BLANK: RejectionReason.BLANK,
    layout.STRING_NOT_FOUND: RejectionReason.NOT_FOUND,
    layout.STRING_NOT_SUPPORTED: RejectionReason.NOT_SUPPORTED,
    layout.STRING_NO_PERMISSION: RejectionReason.NO_PERMISSION,
}


def number_reason(value: float, blank: float) -> RejectionReason | None:
    """Return why a raw number is blank, or None for a real value. `blank` is the lowest blank value of its type.

    Every number that is at least `blank` is blank, as in dcgmvalue.h.
    """
    if value != value:  # noqa: PLR0124 - the test for NaN
        return RejectionReason.BLANK
    if value < blank:
        return None
    distance = value - blank
    return _BLANKS[int(distance)] if distance in (1, 2, 3) else RejectionReason.BLANK


def text_reason(text: str) -> RejectionReason | None:
    """Return why a raw text is blank, or None for a real value."""
    # The test of dcgmvalue.h, which also matches blank texts of newer versions.
    if text.startswith("<<<") and ">>>" in text:
        return _TEXT_BLANKS.get(text, RejectionReason.BLANK)
    return None if text else RejectionReason.BLANK


def status_reason(status: int) -> RejectionReason | None:
    """Return the reason for a status other than OK; None for a lost GPU, which is reported once and not per field."""
    return None if status in _NOT_ABOUT_THE_FIELD else _STATUS_REASONS.get(status, RejectionReason.BLANK)


def checked_raw(value: float | str, wanted: WantedField) -> tuple[SampleValue, RejectionReason | None]:
    """Return the value, or None and why it is rejected: blank, a text in a field of numbers, or out of range."""
    if isinstance(value, str):
        reason = text_reason(value) or (None if wanted.kind == "string" else RejectionReason.BLANK)
    else:
        # By the value's own type, not its field's. 2^47, the blank double, is a possible value of an integer field: a
        # counter of bytes or cycles gets there.
        reason = number_reason(value, layout.INT64_BLANK if isinstance(value, int) else layout.DOUBLE_BLANK)
    return checked(value, wanted) if reason is None else (None, reason)
