"""What an answer of NVML is worth: return codes, values that mean "none", and values that cannot be.

Return codes are those of `nvml.h` (`nvmlReturn_t`). A failure never becomes a zero: it becomes a reason.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from exporter.node.devices.readings import RejectReason, WantedField
from exporter.source import SourceError

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 25
DEPRECATED = 26
GPU_NOT_FOUND = 28

REASONS: Mapping[int, RejectReason] = {
    NOT_SUPPORTED: "not_supported",
    FUNCTION_NOT_FOUND: "not_supported",
    VERSION_MISMATCH: "not_supported",
    DEPRECATED: "not_supported",
    NO_PERMISSION: "no_permission",
    NOT_FOUND: "not_found",
}
"""Why a value is missing; every other code of a single value is a plain blank."""

LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})
"""The board is known but does not answer; its handle is dead."""

FATAL: Mapping[int, tuple[str, str]] = {
    1: ("not_initialized", "NVML lost its connection to the driver"),
    9: ("driver_not_loaded", "the NVIDIA driver is not loaded"),
    12: ("library_missing", "libnvidia-ml.so.1 cannot be loaded: is the driver visible in this container?"),
    18: ("driver_mismatch", "the driver was replaced while its library was loaded; this process has to start again"),
}
"""Codes that end the session with the library as a whole: (reason, sentence)."""

NONE_32, NONE_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
"""NVML_VALUE_NOT_AVAILABLE in its two widths."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """In place of a value: why there is none to show."""

    reason: RejectReason


Answer = int | float | str | Rejected


class BoardLostError(Exception):
    """One board does not answer any more; the others do."""


def failure(code: int) -> SourceError:
    """The error of a call without which there is nothing to read, such as initialisation."""
    if code in FATAL:
        return SourceError(*FATAL[code])
    if code == NO_PERMISSION:
        return SourceError("no_permission", "NVML may not be used by this process: no access to /dev/nvidia*")
    reason = "timeout" if code == TIMEOUT else "failed"
    return SourceError(reason, f"NVML could not be opened: return code {code}")


def refusal(code: int) -> Rejected:
    """Why a value is missing. Raises BoardLostError or SourceError when the code speaks of more than one value."""
    if code in LOST:
        raise BoardLostError
    if code in FATAL:
        raise failure(code)
    return Rejected(REASONS.get(code, "blank"))


def usable(raw: float | str) -> bool:
    """Whether a raw answer is a value at all."""
    if isinstance(raw, float):
        return math.isfinite(raw)
    return raw not in (NONE_32, NONE_64, "")


def judged(answer: Answer, wanted: WantedField) -> Answer:
    """The answer, unless it is above what the field can be."""
    if wanted.high is None or isinstance(answer, str | Rejected) or answer <= wanted.high:
        return answer
    return Rejected("out_of_range")
