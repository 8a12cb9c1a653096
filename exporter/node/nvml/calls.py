"""How NVML gives each DCGM field: the call, and the way from NVML's unit to DCGM's, as tables.

Calls are grouped: one call serves every field it answers, and ids of `nvmlDeviceGetFieldValues` go in one request.
Numbers and units are those of `nvml.h`; framebuffer becomes MiB, power watts, energy stays millijoules.
"""

import ctypes
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.nvml.values import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    Answer,
    Rejected,
    refusal,
    usable,
)

Raw = int | float | str

NVLINK_ALL = 0xFFFFFFFF
"""Scope of a field value that means all links of the board together."""


@dataclass(frozen=True, slots=True)
class Call:
    """One NVML call and the DCGM fields that its answers are, in order."""

    fields: tuple[int, ...]
    ask: Callable[[Any], tuple[Raw | None, ...]]
    of_instance: bool = False
    """Whether it may be asked of a MIG device."""


def _single(function: Callable[..., Raw], *arguments: int) -> Callable[[Any], tuple[Raw]]:
    return lambda handle: (function(handle, *arguments),)


def _memory(handle: Any) -> tuple[Raw | None, ...]:
    """Total, free, used, reserved (bytes), used share.

    Before R510 there is only the first version of the record, whose `used` includes what is reserved: another
    quantity than DCGM's, so only total and free are taken from it.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        older = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return older.total, older.free, None, None, None
    usable_bytes = memory.total - memory.reserved
    share = memory.used / usable_bytes if usable_bytes > 0 else None
    return memory.total, memory.free, memory.used, memory.reserved, share


def _bar1(handle: Any) -> tuple[Raw, ...]:
    memory = pynvml.nvmlDeviceGetBAR1MemoryInfo(handle)
    return memory.bar1Total, memory.bar1Used, memory.bar1Free


def _utilization(handle: Any) -> tuple[Raw, ...]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu, rates.memory


def _temperature(handle: Any) -> tuple[Raw]:
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        return (pynvml.nvmlDeviceGetTemperatureV(handle, sensor),)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        return (pynvml.nvmlDeviceGetTemperature(handle, sensor),)


def _clock_events(handle: Any) -> tuple[Raw]:
    try:
        return (pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        return (pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),)


def _remap_histogram(handle: Any) -> tuple[Raw, ...]:
    banks = pynvml.nvmlDeviceGetRowRemapperHistogram(handle)
    return banks.max, banks.high, banks.partial, banks.low, banks.none


def _capability(handle: Any) -> tuple[Raw]:
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return ((major << 16) + minor,)


def _gpm_support(handle: Any) -> tuple[Raw]:
    return (pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice,)


def _mig_devices(handle: Any) -> tuple[Raw | None]:
    return (pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) or None,)  # 0: a board that knows no MIG


def _sram_exceeded(handle: Any) -> tuple[Raw]:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return (status.bThresholdExceeded,)


def _first(function: Callable[[Any], Iterable[Raw]]) -> Callable[[Any], tuple[Raw]]:
    return lambda handle: (next(iter(function(handle))),)


CALLS: tuple[Call, ...] = (
    Call((52,), _single(pynvml.nvmlDeviceGetIndex)),
    Call((53,), _single(pynvml.nvmlDeviceGetSerial)),
    Call((55,), _single(pynvml.nvmlDeviceGetMinorNumber)),
    Call((63,), _capability),
    Call((66,), _single(pynvml.nvmlDeviceGetPersistenceMode)),
    Call((67,), _first(pynvml.nvmlDeviceGetMigMode)),
    Call((69,), _mig_devices),
    Call((85,), _single(pynvml.nvmlDeviceGetVbiosVersion)),
    Call((90, 92, 93), _bar1, of_instance=True),
    Call((94,), _gpm_support),
    Call((100,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)),
    Call((101,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM)),
    Call((102,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_VIDEO)),
    Call((110,), _single(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_SM)),
    Call((111,), _single(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_MEM)),
    Call((112,), _clock_events),
    Call((113,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)),
    Call((114,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM)),
    Call((150,), _temperature),
    Call((151,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX)),
    Call((152,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX)),
    Call((153,), _single(pynvml.nvmlDeviceGetMarginTemperature)),
    Call((155,), _single(pynvml.nvmlDeviceGetPowerUsage)),
    Call((158,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)),
    Call((159,), _single(pynvml.nvmlDeviceGetTemperatureThreshold, pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)),
    Call((160,), _single(pynvml.nvmlDeviceGetPowerManagementLimit)),
    Call((164,), _single(pynvml.nvmlDeviceGetEnforcedPowerLimit)),
    Call((190,), _single(pynvml.nvmlDeviceGetPerformanceState)),
    Call((191,), _single(pynvml.nvmlDeviceGetFanSpeed)),
    Call((203, 204), _utilization),
    Call((206,), _first(pynvml.nvmlDeviceGetEncoderUtilization)),
    Call((207,), _first(pynvml.nvmlDeviceGetDecoderUtilization)),
    Call((235,), _single(pynvml.nvmlDeviceGetMaxPcieLinkGeneration)),
    Call((236,), _single(pynvml.nvmlDeviceGetMaxPcieLinkWidth)),
    Call((237,), _single(pynvml.nvmlDeviceGetCurrPcieLinkGeneration)),
    Call((238,), _single(pynvml.nvmlDeviceGetCurrPcieLinkWidth)),
    Call((250, 251, 252, 253, 254), _memory, of_instance=True),
    Call((346,), _sram_exceeded),
    Call((385, 386, 387, 388, 389), _remap_histogram),
    Call((500,), _single(pynvml.nvmlDeviceGetVirtualizationMode)),
)

FIELD_VALUES: Mapping[int, int] = {
    140: 82, 156: 83, 157: 186, 202: 94, 300: 1, 310: 3, 311: 4, 312: 5, 313: 6,
    240: 74, 241: 75, 242: 76, 243: 77, 244: 78, 245: 79, 246: 80, 247: 81,
    390: 29, 391: 30, 392: 31, 393: 143, 394: 142, 395: 145, 396: 144,
    409: 38, 419: 45, 429: 52, 439: 59,
    1420: 74, 1421: 76, 1422: 269, 1423: 270, 1424: 271, 1501: 173, 1523: 230,
}  # fmt: skip
"""DCGM field -> NVML_FI_* id that gives the same quantity in the same unit (157: milliwatts)."""

NVLINK_KIB: Mapping[str, int] = {"tx": 138, "rx": 139}
"""NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_*: payload counters of all links, KiB."""

NVLINK_RATES: Mapping[int, tuple[str, ...]] = {449: ("tx", "rx"), 843: ("tx",), 897: ("rx",)}
"""DCGM field -> the directions whose rates it sums."""


def _watts(milliwatts: Any) -> float:
    return float(milliwatts / 1000)


def _mebibytes(count: Any) -> int:
    return int(count) >> 20


CONVERT: Mapping[int, Callable[[Any], Raw]] = {
    **dict.fromkeys((155, 157, 160, 164), _watts),
    **dict.fromkeys((90, 92, 93, 250, 251, 252, 253), _mebibytes),
}
"""From NVML's unit to the field's, where they differ."""


def answer_of(field: int, raw: Raw | None) -> Answer:
    """A raw answer in the field's unit; judged before it is converted."""
    if raw is None:
        return Rejected("not_supported")
    if not usable(raw):
        return Rejected("blank")
    convert = CONVERT.get(field)
    return raw if convert is None else convert(raw)


def ask(call: Call, handle: Any) -> dict[int, Answer]:
    """Every field of one call. Raises BoardLostError or SourceError when the failure is more than this call's."""
    try:
        raws = call.ask(handle)
    except pynvml.NVMLError as error:
        return dict.fromkeys(call.fields, refusal(error.value))
    return {field: answer_of(field, raw) for field, raw in zip(call.fields, raws, strict=True)}


def calls_for(fields: Collection[int], *, of_instance: bool) -> tuple[Call, ...]:
    """The fewest calls that answer these fields."""
    return tuple(
        call for call in CALLS if (call.of_instance or not of_instance) and not set(fields).isdisjoint(call.fields)
    )


_FIELD_VALUE_MEMBER = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of the value union by `nvmlValueType_t`."""


def field_values(handle: Any, requests: list[tuple[int, int]]) -> list[tuple[Raw | Rejected, int]]:
    """Answers to (field value id, scope) in order, with the library's timestamp (µs since the epoch)."""
    try:
        records = pynvml.nvmlDeviceGetFieldValues(handle, requests)
    except pynvml.NVMLError as error:
        return [(refusal(error.value), 0)] * len(requests)
    return [(_field_value(record), record.timestamp) for record in records]


def _field_value(record: Any) -> Raw | Rejected:
    # A driver that does not know the id calls it an invalid argument.
    code = NOT_SUPPORTED if record.nvmlReturn == INVALID_ARGUMENT else record.nvmlReturn
    if code:
        return refusal(code)
    if record.valueType >= len(_FIELD_VALUE_MEMBER):
        return Rejected("not_supported")
    raw: Raw = getattr(record.value, _FIELD_VALUE_MEMBER[record.valueType])
    return raw
