"""Checks NVML return codes and raw values, and converts units: a blank value or a failed call becomes a reason.

The codes are those of `nvmlReturn_t` in `nvml.h`, as `pynvml` has them. Units are those of `nvml.h` (checked against
nvidia-ml-py 13.615.71): memory is in bytes (DCGM: MiB), power in mW (DCGM: W), energy in mJ as in DCGM.

No I/O, no state.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.source import SourceError

INVALID_ARGUMENT: int = pynvml.NVML_ERROR_INVALID_ARGUMENT
NOT_SUPPORTED: int = pynvml.NVML_ERROR_NOT_SUPPORTED
NO_PERMISSION: int = pynvml.NVML_ERROR_NO_PERMISSION
NOT_FOUND: int = pynvml.NVML_ERROR_NOT_FOUND
TIMEOUT: int = pynvml.NVML_ERROR_TIMEOUT
FUNCTION_NOT_FOUND: int = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
"""pynvml raises it where the driver's library lacks the symbol: the driver is older than the function."""
GPU_IS_LOST: int = pynvml.NVML_ERROR_GPU_IS_LOST
RESET_REQUIRED: int = pynvml.NVML_ERROR_RESET_REQUIRED
VERSION_MISMATCH: int = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
"""The driver does not have this version of a record."""
DEPRECATED: int = pynvml.NVML_ERROR_DEPRECATED
GPU_NOT_FOUND: int = pynvml.NVML_ERROR_GPU_NOT_FOUND

REASONS: Mapping[int, RejectionReason] = {
    NOT_SUPPORTED: RejectionReason.NOT_SUPPORTED,
    FUNCTION_NOT_FOUND: RejectionReason.NOT_SUPPORTED,
    VERSION_MISMATCH: RejectionReason.NOT_SUPPORTED,
    DEPRECATED: RejectionReason.NOT_SUPPORTED,
    NO_PERMISSION: RejectionReason.NO_PERMISSION,
    NOT_FOUND: RejectionReason.NOT_FOUND,
}
"""Why one value is rejected, by return code; every other code is a blank, as in DCGM."""

LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})
"""Codes of a GPU that NVML lists but cannot reach; its handle stays invalid, also after the GPU is back."""

FATAL: Mapping[int, tuple[NvmlReason, str]] = {
    pynvml.NVML_ERROR_UNINITIALIZED: (NvmlReason.NOT_INITIALIZED, "NVML lost its connection to the driver"),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (NvmlReason.DRIVER_NOT_LOADED, "the NVIDIA driver is not loaded"),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        NvmlReason.LIBRARY_MISSING,
        "libnvidia-ml.so.1 cannot be loaded: is the driver visible in this container?",
    ),
    # After a driver update the loaded library no longer fits the kernel module.
    # pynvml never unloads the library, so that only a new process loads the new one, if this container has it.
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        NvmlReason.DRIVER_MISMATCH,
        "the driver and its library have different versions: the driver was replaced; a new process loads the library",
    ),
}
"""Codes that end the session with the library: (reason, message)."""

NONE_32, NONE_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
"""NVML_VALUE_NOT_AVAILABLE, which is -1, as an unsigned number of 32 and of 64 bits."""


@dataclass(frozen=True, slots=True)
class RejectedValue:
    """A value that is not exposed, and why."""

    reason: RejectionReason


NvmlValue = int | float | str | RejectedValue


def is_unsupported(value: NvmlValue | None) -> bool:
    """Whether the GPU or its driver does not have this value."""
    return isinstance(value, RejectedValue) and value.reason is RejectionReason.NOT_SUPPORTED


RawValue = int | float | str
"""A value as NVML gives it, in NVML's unit."""


def escaped(function: Callable[[Any], str], handle: Any) -> str:
    r"""Read a text with a pynvml function; bytes that are not UTF-8, which pynvml does not decode, become `\xff`."""
    try:
        return function(handle)
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "backslashreplace")


class GpuLostError(Exception):
    """NVML cannot reach one GPU any more; the other GPUs can still be read."""


def source_error(code: int) -> SourceError:
    """Return the error for a failed call without which nothing can be read, such as nvmlInit."""
    if code in FATAL:
        return SourceError(*FATAL[code])
    if code == NO_PERMISSION:
        return SourceError(NvmlReason.NO_PERMISSION, "NVML may not be used by this process: no access to /dev/nvidia*")
    reason = NvmlReason.TIMEOUT if code == TIMEOUT else NvmlReason.FAILED
    return SourceError(reason, f"NVML could not be opened: return code {code}")


def rejected(code: int) -> RejectedValue:
    """Return the reason why a call gave no value.

    Raises GpuLostError when the code concerns the whole GPU, SourceError when it concerns the whole library.
    """
    if code in LOST:
        raise GpuLostError
    if code in FATAL:
        raise source_error(code)
    return RejectedValue(REASONS.get(code, RejectionReason.BLANK))


def raw_reason(raw: float | str) -> RejectionReason | None:
    """Return why a raw value cannot be exposed, or None when it can, if it is in the range of its field.

    NVML_VALUE_NOT_AVAILABLE, NaN and an empty text are blank; nothing that is measured is infinite.
    """
    if isinstance(raw, float) and not math.isfinite(raw):
        return RejectionReason.BLANK if math.isnan(raw) else RejectionReason.OUT_OF_RANGE
    return RejectionReason.BLANK if raw in (NONE_32, NONE_64, "") else None


_IN_MILLIWATTS = (
    field_ids.POWER_USAGE,
    field_ids.POWER_USAGE_INSTANT,
    field_ids.POWER_MGMT_LIMIT,
    field_ids.POWER_MGMT_LIMIT_MIN,
    field_ids.POWER_MGMT_LIMIT_MAX,
    field_ids.POWER_MGMT_LIMIT_DEF,
    field_ids.ENFORCED_POWER_LIMIT,
)
_IN_BYTES = (
    *(field_ids.BAR1_TOTAL, field_ids.BAR1_USED, field_ids.BAR1_FREE),
    *(field_ids.FB_TOTAL, field_ids.FB_FREE, field_ids.FB_USED, field_ids.FB_RESERVED, field_ids.VGPU_MEMORY_USAGE),
)


def _watts(milliwatts: Any) -> float:
    return float(milliwatts / 1000)


def _mebibytes(count: Any) -> int:
    return int(count) >> 20


def _bit_error_ratio(encoded: Any) -> float:
    """Decode a mantissa (bits 8 to 11) and the negative power of ten that it is of (bits 0 to 7), as in `nvml.h`.

    15 and 255 together mean that there was no error (DCGM 4.6.0, source).
    """
    mantissa, exponent = int(encoded) >> 8 & 0xF, int(encoded) & 0xFF
    return 0.0 if (mantissa, exponent) == (15, 255) else float(f"{mantissa}e-{exponent}")


CONVERSIONS: Mapping[int, Callable[[Any], RawValue]] = {
    **dict.fromkeys(_IN_MILLIWATTS, _watts),
    **dict.fromkeys(_IN_BYTES, _mebibytes),
    **dict.fromkeys(field_ids.NVLINK_BIT_ERROR_RATIOS, _bit_error_ratio),
}
"""DCGM field -> the conversion from NVML's unit, where the units differ."""


def nvml_value(field: int, raw: RawValue | None) -> NvmlValue:
    """Return a raw value in the field's unit, or why it is rejected. None means that the driver does not have it."""
    if raw is None:
        return RejectedValue(RejectionReason.NOT_SUPPORTED)
    reason = raw_reason(raw)  # before the conversion, which would turn a blank value into another number
    if reason is not None:
        return RejectedValue(reason)
    convert = CONVERSIONS.get(field)
    return raw if convert is None else convert(raw)
