"""Reads DCGM fields with NVML calls: tables of the call and the conversion of units for each field, and their use.

Fields are grouped so that one call serves every field it can. Ids and units are those of `nvml.h` (checked against
nvidia-ml-py 13.615.71): memory is in bytes (DCGM: MiB), power in mW (DCGM: W), energy in mJ as in DCGM.
"""

import ctypes
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.readings import RejectionReason
from exporter.node.nvml.values import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NvmlValue,
    RejectedValue,
    raw_reason,
    rejected,
)

RawValue = int | float | str
"""A value as NVML gives it, in NVML's unit."""

ALL_LINKS = 0xFFFFFFFF
"""Scope id of an NVLink field value: the sum over all links (`nvml.h`; any other scope id is the number of a link)."""


@dataclass(frozen=True, slots=True)
class NvmlCall:
    """One NVML call and the DCGM fields that its results are, in order. The function takes a device handle."""

    fields: tuple[int, ...]
    function: Callable[[Any], tuple[RawValue | None, ...]]
    on_mig_devices: bool = False
    """Whether NVML accepts the handle of a MIG device; where it does not, only the GPU has the value."""


def _single(function: Callable[..., RawValue], *arguments: int) -> Callable[[Any], tuple[RawValue]]:
    return lambda handle: (function(handle, *arguments),)


def _memory(handle: Any) -> tuple[RawValue | None, ...]:
    """Read total, free, used and reserved memory in bytes, and used / (total - reserved) as DCGM computes field 254.

    nvmlMemory_v2 exists since driver R510. In the first version of the record `used` includes what is reserved, which
    is another quantity than DCGM's; from an older driver only total and free are taken. (The R525 reference says that
    `used` of version 2 includes it too; measured on an A100 it does not: nvml-wrapper issue 57.)
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        older = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return older.total, older.free, None, None, None
    usable_bytes = memory.total - memory.reserved
    ratio = memory.used / usable_bytes if usable_bytes > 0 else None
    return memory.total, memory.free, memory.used, memory.reserved, ratio


def _bar1(handle: Any) -> tuple[RawValue, ...]:
    memory = pynvml.nvmlDeviceGetBAR1MemoryInfo(handle)
    return memory.bar1Total, memory.bar1Used, memory.bar1Free


def _utilization(handle: Any) -> tuple[RawValue, ...]:
    # Not supported while MIG mode is on, neither on the GPU nor on a MIG device.
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu, rates.memory


def _temperature(handle: Any) -> tuple[RawValue]:
    # nvmlDeviceGetTemperature is deprecated since CUDA 13.0, to be removed in 14.0 (NVML reference, deprecation
    # notices); drivers without its successor nvmlDeviceGetTemperatureV are still in use.
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        return (pynvml.nvmlDeviceGetTemperatureV(handle, sensor),)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        return (pynvml.nvmlDeviceGetTemperature(handle, sensor),)


def _clock_events(handle: Any) -> tuple[RawValue]:
    # The same bit mask under two names: R525 has only the "throttle" function, R550 has both, and the old one
    # is to be removed in CUDA 14.0 (NVML reference, deprecation notices).
    try:
        return (pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        return (pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),)


def _remap_histogram(handle: Any) -> tuple[RawValue, ...]:
    banks = pynvml.nvmlDeviceGetRowRemapperHistogram(handle)
    return banks.max, banks.high, banks.partial, banks.low, banks.none


def _capability(handle: Any) -> tuple[RawValue]:
    # As the DCGM engine stores field 63; the comment in dcgm_fields.h (a shift by 32 bits) is wrong.
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return ((major << 16) + minor,)


def _gpm_support(handle: Any) -> tuple[RawValue]:
    return (pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice,)


def _mig_devices(handle: Any) -> tuple[RawValue | None]:
    return (pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) or None,)  # 0 on a GPU without MIG


def _sram_exceeded(handle: Any) -> tuple[RawValue]:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return (status.bThresholdExceeded,)


def _first(function: Callable[[Any], Iterable[RawValue]]) -> Callable[[Any], tuple[RawValue]]:
    return lambda handle: (next(iter(function(handle))),)


CALLS: tuple[NvmlCall, ...] = (
    NvmlCall((52,), _single(pynvml.nvmlDeviceGetIndex)),
    NvmlCall((53,), _single(pynvml.nvmlDeviceGetSerial)),
    NvmlCall((55,), _single(pynvml.nvmlDeviceGetMinorNumber)),
    NvmlCall((63,), _capability),
    NvmlCall((66,), _single(pynvml.nvmlDeviceGetPersistenceMode)),
    NvmlCall((67,), _first(pynvml.nvmlDeviceGetMigMode)),  # (current, pending)
    NvmlCall((69,), _mig_devices),
    NvmlCall((85,), _single(pynvml.nvmlDeviceGetVbiosVersion)),
    NvmlCall((90, 92, 93), _bar1, on_mig_devices=True),
    NvmlCall((94,), _gpm_support),
    NvmlCall((100,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)),
    NvmlCall((101,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM)),
    NvmlCall((102,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_VIDEO)),
    NvmlCall((110,), _single(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_SM)),  # removed in CUDA 14.0
    NvmlCall((111,), _single(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_MEM)),
    NvmlCall((112,), _clock_events),
    NvmlCall((113,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)),
    NvmlCall((114,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM)),
    NvmlCall((150,), _temperature),
    NvmlCall((151,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX)),
    NvmlCall((152,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX)),
    NvmlCall((153,), _single(pynvml.nvmlDeviceGetMarginTemperature)),
    NvmlCall((155,), _single(pynvml.nvmlDeviceGetPowerUsage)),  # a mean over 1 s on Ampere and newer but GA100
    NvmlCall((158,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)),
    NvmlCall((159,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)),
    NvmlCall((160,), _single(pynvml.nvmlDeviceGetPowerManagementLimit)),
    NvmlCall((164,), _single(pynvml.nvmlDeviceGetEnforcedPowerLimit)),
    NvmlCall((190,), _single(pynvml.nvmlDeviceGetPerformanceState)),
    NvmlCall((191,), _single(pynvml.nvmlDeviceGetFanSpeed)),
    NvmlCall((203, 204), _utilization),
    NvmlCall((206,), _first(pynvml.nvmlDeviceGetEncoderUtilization)),  # (percent, sampling period in µs)
    NvmlCall((207,), _first(pynvml.nvmlDeviceGetDecoderUtilization)),
    NvmlCall((235,), _single(pynvml.nvmlDeviceGetMaxPcieLinkGeneration)),
    NvmlCall((236,), _single(pynvml.nvmlDeviceGetMaxPcieLinkWidth)),
    NvmlCall((237,), _single(pynvml.nvmlDeviceGetCurrPcieLinkGeneration)),
    NvmlCall((238,), _single(pynvml.nvmlDeviceGetCurrPcieLinkWidth)),
    NvmlCall((250, 251, 252, 253, 254), _memory, on_mig_devices=True),
    NvmlCall((346,), _sram_exceeded),
    NvmlCall((385, 386, 387, 388, 389), _remap_histogram),
    NvmlCall((500,), _single(pynvml.nvmlDeviceGetVirtualizationMode)),
)

FIELD_VALUES: Mapping[int, int] = {
    140: 82, 156: 83, 157: 186, 202: 94, 300: 1, 310: 3, 311: 4, 312: 5, 313: 6,
    240: 74, 241: 75, 242: 76, 243: 77, 244: 78, 245: 79, 246: 80, 247: 81,
    390: 29, 391: 30, 392: 31, 393: 143, 394: 142, 395: 145, 396: 144,
    409: 38, 419: 45, 429: 52, 439: 59,
    1420: 74, 1421: 76, 1422: 269, 1423: 270, 1424: 271, 1501: 173, 1523: 230,
}  # fmt: skip
"""DCGM field -> NVML_FI_* id that gives the same quantity in the same unit (157: milliwatts).

All are read with scope id 0. That is the GPU's own power for 157 (NVML_POWER_SCOPE_GPU); the others have no scope.
"""

NVLINK_KIB: Mapping[str, int] = {"tx": 138, "rx": 139}
"""NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_*: payload counters in KiB, summed over all links with the scope ALL_LINKS."""

NVLINK_RATES: Mapping[int, tuple[str, ...]] = {449: ("tx", "rx"), 843: ("tx",), 897: ("rx",)}
"""DCGM field -> the directions whose rates it sums."""


def _watts(milliwatts: Any) -> float:
    return float(milliwatts / 1000)


def _mebibytes(count: Any) -> int:
    return int(count) >> 20


CONVERSIONS: Mapping[int, Callable[[Any], RawValue]] = {
    **dict.fromkeys((155, 157, 160, 164), _watts),
    **dict.fromkeys((90, 92, 93, 250, 251, 252, 253), _mebibytes),
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


def read_call(call: NvmlCall, handle: Any) -> dict[int, NvmlValue]:
    """Read every field of one call; a text that is not UTF-8 is a blank.

    Raises GpuLostError for a lost GPU, SourceError when NVML as a whole fails.
    """
    try:
        raws = call.function(handle)
    except pynvml.NVMLError as error:
        return dict.fromkeys(call.fields, rejected(error.value))
    except UnicodeDecodeError:
        return dict.fromkeys(call.fields, RejectedValue(RejectionReason.BLANK))
    return {field: nvml_value(field, raw) for field, raw in zip(call.fields, raws, strict=True)}


def calls_for(fields: Collection[int], *, mig_device: bool) -> tuple[NvmlCall, ...]:
    """Return the fewest calls that give these fields, of a MIG device or of a GPU."""
    return tuple(
        call for call in CALLS if (call.on_mig_devices or not mig_device) and not set(fields).isdisjoint(call.fields)
    )


_FIELD_VALUE_MEMBER = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of the union `nvmlValue_t`, in the order of `nvmlValueType_t`."""


def read_field_values(handle: Any, requests: list[tuple[int, int]]) -> list[tuple[RawValue | RejectedValue, int]]:
    """Read field values by (NVML_FI_* id, scope id) with one call.

    Returns them in order, each with the library's timestamp (µs since the epoch). Raises as `read_call` does.
    """
    try:
        records = pynvml.nvmlDeviceGetFieldValues(handle, requests)
    except pynvml.NVMLError as error:
        return [(rejected(error.value), 0)] * len(requests)
    return [(_field_value(record), record.timestamp) for record in records]


def _field_value(record: Any) -> RawValue | RejectedValue:
    # The call succeeds as a whole; each record has a return code of its own. A driver that does not have the id
    # returns "invalid argument" for it.
    code = NOT_SUPPORTED if record.nvmlReturn == INVALID_ARGUMENT else record.nvmlReturn
    if code:
        return rejected(code)
    if record.valueType >= len(_FIELD_VALUE_MEMBER):
        return RejectedValue(RejectionReason.NOT_SUPPORTED)
    raw: RawValue = getattr(record.value, _FIELD_VALUE_MEMBER[record.valueType])
    return raw
