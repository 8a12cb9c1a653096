"""Reads DCGM fields with NVML calls: the table of the call for each field, and its use.

Fields are grouped so that one call serves every field it can. Fields that are field values of NVML are in
field_values.py, engine activity is in gpm.py.
"""

import ctypes
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.calls.fabric import fabric
from exporter.node.nvml.calls.field_values import LINKS_WITH_FIELD_VALUES
from exporter.node.nvml.calls.vgpu_license import vgpu_license
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.nvml.native.values import (
    FUNCTION_NOT_FOUND,
    NvmlValue,
    RawValue,
    RejectedValue,
    nvml_value,
    rejected,
)


@dataclass(frozen=True, slots=True)
class NvmlCall:
    """One NVML call and the DCGM fields that its results are, in order. The function takes a handle."""

    fields: tuple[int, ...]
    function: Callable[[Any], tuple[RawValue | None, ...]]
    on_mig_devices: bool = False
    """Whether NVML accepts the handle of a MIG device; where it does not, only the GPU has the value."""


def _single(function: Callable[..., RawValue], *arguments: int) -> Callable[[Any], tuple[RawValue]]:
    return lambda handle: (function(handle, *arguments),)


_NO_MEMORY: tuple[RawValue | None, ...] = (None, None, None, None, None)


def _memory(handle: Any) -> tuple[RawValue | None, ...]:
    """Read total, free, used and reserved memory in bytes, and used / (total - reserved) as DCGM computes field 254.

    nvmlMemory_v2 exists since driver R510. In the first version of the record `used` includes what is reserved, which
    `library_problems` reports; without the reserved part there is no share. (The R525 reference says that `used` of
    version 2 includes it too; measured on an A100 it does not: nvml-wrapper issue 57.) A GPU that shares the memory of
    the machine (Grace-Blackwell GB10) has none of its own: NVML does not support the call, or the total is 0.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value != FUNCTION_NOT_FOUND:
            raise
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return (memory.total, memory.free, memory.used, None, None) if memory.total else _NO_MEMORY
    if not memory.total:
        return _NO_MEMORY
    usable_bytes = memory.total - memory.reserved
    ratio = memory.used / usable_bytes if usable_bytes > 0 else None
    return memory.total, memory.free, memory.used, memory.reserved, ratio


def library_problems(fields: Collection[int]) -> tuple[tuple[NvmlReason, str], ...]:
    """What is wrong with the values of these fields because of the library's age: (reason, message)."""
    if field_ids.FB_USED not in fields or hasattr(pynvml.nvmlLib, "nvmlDeviceGetMemoryInfo_v2"):
        return ()
    message = "the driver is older than R510: used framebuffer includes what the driver reserves, which is not known"
    return ((NvmlReason.RESERVED_INCLUDED, message),)


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


def _brand(handle: Any) -> tuple[RawValue | None]:
    return (BRANDS.get(pynvml.nvmlDeviceGetBrand(handle)),)


def _compute_mode(handle: Any) -> tuple[RawValue | None]:
    return (COMPUTE_MODES.get(pynvml.nvmlDeviceGetComputeMode(handle)),)


def _power_limits(handle: Any) -> tuple[RawValue, ...]:
    lowest, highest = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
    return lowest, highest


def _threshold(which: int) -> Callable[[Any], tuple[RawValue]]:
    return _single(pynvml.nvmlDeviceGetTemperatureThreshold, which)


def _first(function: Callable[[Any], Iterable[RawValue]]) -> Callable[[Any], tuple[RawValue]]:
    return lambda handle: (next(iter(function(handle))),)


BRANDS: Mapping[int, str] = {
    pynvml.NVML_BRAND_QUADRO: "Quadro",
    pynvml.NVML_BRAND_TESLA: "Tesla",
    pynvml.NVML_BRAND_NVS: "NVS",
    pynvml.NVML_BRAND_GRID: "Grid",
    pynvml.NVML_BRAND_GEFORCE: "GeForce",
    pynvml.NVML_BRAND_TITAN: "Titan",
    pynvml.NVML_BRAND_NVIDIA_VAPPS: "NVIDIA Virtual Applications",
    pynvml.NVML_BRAND_NVIDIA_VPC: "NVIDIA Virtual PC",
    pynvml.NVML_BRAND_NVIDIA_VCS: "NVIDIA Virtual Compute Server",
    pynvml.NVML_BRAND_NVIDIA_VWS: "NVIDIA RTX Virtual Workstation",
    pynvml.NVML_BRAND_NVIDIA_VGAMING: "NVIDIA vGaming",
    pynvml.NVML_BRAND_QUADRO_RTX: "Quadro RTX",
    pynvml.NVML_BRAND_NVIDIA_RTX: "NVIDIA RTX",
    pynvml.NVML_BRAND_NVIDIA: "NVIDIA",
    pynvml.NVML_BRAND_GEFORCE_RTX: "GeForce RTX",
    pynvml.NVML_BRAND_TITAN_RTX: "Titan RTX",
}
"""Product lines as DCGM spells them (4.6.0, source)."""
COMPUTE_MODES: Mapping[int, int] = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: 0,
    pynvml.NVML_COMPUTEMODE_PROHIBITED: 1,
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: 2,
}
"""NVML's number -> DCGM's, which has no place for a mode that is gone (4.6.0, source)."""
LINK_ERROR_COUNTERS: Mapping[str, int] = {
    "CRC_FLIT": pynvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    "CRC_DATA": pynvml.NVML_NVLINK_ERROR_DL_CRC_DATA,
    "REPLAY": pynvml.NVML_NVLINK_ERROR_DL_REPLAY,
    "RECOVERY": pynvml.NVML_NVLINK_ERROR_DL_RECOVERY,
}


def _later_links() -> Iterator[NvmlCall]:
    """Yield the calls for the errors of the links that have no field values."""
    for kind, fields in field_ids.NVLINK_ERROR_COUNTS.items():
        for link in range(LINKS_WITH_FIELD_VALUES, len(fields)):
            counter = _single(pynvml.nvmlDeviceGetNvLinkErrorCounter, link, LINK_ERROR_COUNTERS[kind])
            yield NvmlCall((fields[link],), counter)


CALLS: tuple[NvmlCall, ...] = (
    NvmlCall((field_ids.BRAND,), _brand),
    NvmlCall((field_ids.NVML_INDEX,), _single(pynvml.nvmlDeviceGetIndex)),
    NvmlCall((field_ids.SERIAL,), _single(pynvml.nvmlDeviceGetSerial)),
    NvmlCall((field_ids.MINOR_NUMBER,), _single(pynvml.nvmlDeviceGetMinorNumber)),
    NvmlCall((field_ids.CUDA_COMPUTE_CAPABILITY,), _capability),
    NvmlCall((field_ids.OEM_INFOROM_VER,), _single(pynvml.nvmlDeviceGetInforomVersion, pynvml.NVML_INFOROM_OEM)),
    NvmlCall((field_ids.ECC_INFOROM_VER,), _single(pynvml.nvmlDeviceGetInforomVersion, pynvml.NVML_INFOROM_ECC)),
    NvmlCall((field_ids.POWER_INFOROM_VER,), _single(pynvml.nvmlDeviceGetInforomVersion, pynvml.NVML_INFOROM_POWER)),
    NvmlCall((field_ids.INFOROM_IMAGE_VER,), _single(pynvml.nvmlDeviceGetInforomImageVersion)),
    NvmlCall((field_ids.COMPUTE_MODE,), _compute_mode),
    NvmlCall((field_ids.PERSISTENCE_MODE,), _single(pynvml.nvmlDeviceGetPersistenceMode)),
    NvmlCall((field_ids.MIG_MODE,), _first(pynvml.nvmlDeviceGetMigMode)),  # (current, pending)
    NvmlCall((field_ids.MIG_MAX_SLICES,), _mig_devices),
    NvmlCall((field_ids.VBIOS_VERSION,), _single(pynvml.nvmlDeviceGetVbiosVersion)),
    NvmlCall((field_ids.BAR1_TOTAL, field_ids.BAR1_USED, field_ids.BAR1_FREE), _bar1, on_mig_devices=True),
    NvmlCall((field_ids.GPM_SUPPORT,), _gpm_support),
    NvmlCall((field_ids.SM_CLOCK,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)),
    NvmlCall((field_ids.MEM_CLOCK,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM)),
    NvmlCall((field_ids.VIDEO_CLOCK,), _single(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_VIDEO)),
    # To be removed in CUDA 14.0.
    NvmlCall((field_ids.APP_SM_CLOCK,), _single(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_SM)),
    NvmlCall((field_ids.APP_MEM_CLOCK,), _single(pynvml.nvmlDeviceGetApplicationsClock, pynvml.NVML_CLOCK_MEM)),
    NvmlCall((field_ids.CLOCKS_EVENT_REASONS,), _clock_events),
    NvmlCall((field_ids.MAX_SM_CLOCK,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)),
    NvmlCall((field_ids.MAX_MEM_CLOCK,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM)),
    NvmlCall((field_ids.MAX_VIDEO_CLOCK,), _single(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_VIDEO)),
    NvmlCall((field_ids.GPU_TEMP,), _temperature),
    NvmlCall((field_ids.MEM_MAX_OP_TEMP,), _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX)),
    NvmlCall((field_ids.GPU_MAX_OP_TEMP,), _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX)),
    NvmlCall((field_ids.GPU_TEMP_LIMIT,), _single(pynvml.nvmlDeviceGetMarginTemperature)),
    # A mean over 1 s on Ampere and newer, but not on GA100.
    NvmlCall((field_ids.POWER_USAGE,), _single(pynvml.nvmlDeviceGetPowerUsage)),
    NvmlCall((field_ids.SLOWDOWN_TEMP,), _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)),
    NvmlCall((field_ids.SHUTDOWN_TEMP,), _threshold(pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)),
    NvmlCall((field_ids.POWER_MGMT_LIMIT,), _single(pynvml.nvmlDeviceGetPowerManagementLimit)),
    NvmlCall((field_ids.POWER_MGMT_LIMIT_MIN, field_ids.POWER_MGMT_LIMIT_MAX), _power_limits),
    NvmlCall((field_ids.POWER_MGMT_LIMIT_DEF,), _single(pynvml.nvmlDeviceGetPowerManagementDefaultLimit)),
    NvmlCall((field_ids.ENFORCED_POWER_LIMIT,), _single(pynvml.nvmlDeviceGetEnforcedPowerLimit)),
    NvmlCall(field_ids.FABRIC, fabric),
    NvmlCall((field_ids.PSTATE,), _single(pynvml.nvmlDeviceGetPerformanceState)),
    NvmlCall((field_ids.FAN_SPEED,), _single(pynvml.nvmlDeviceGetFanSpeed)),
    NvmlCall((field_ids.GPU_UTIL, field_ids.MEM_COPY_UTIL), _utilization),
    NvmlCall((field_ids.ENC_UTIL,), _first(pynvml.nvmlDeviceGetEncoderUtilization)),  # (percent, sampling period in µs)
    NvmlCall((field_ids.DEC_UTIL,), _first(pynvml.nvmlDeviceGetDecoderUtilization)),
    NvmlCall((field_ids.PCIE_MAX_LINK_GEN,), _single(pynvml.nvmlDeviceGetMaxPcieLinkGeneration)),
    NvmlCall((field_ids.PCIE_MAX_LINK_WIDTH,), _single(pynvml.nvmlDeviceGetMaxPcieLinkWidth)),
    NvmlCall((field_ids.PCIE_LINK_GEN,), _single(pynvml.nvmlDeviceGetCurrPcieLinkGeneration)),
    NvmlCall((field_ids.PCIE_LINK_WIDTH,), _single(pynvml.nvmlDeviceGetCurrPcieLinkWidth)),
    NvmlCall(field_ids.FRAMEBUFFER, _memory, on_mig_devices=True),
    NvmlCall((field_ids.THRESHOLD_SRM,), _sram_exceeded),
    NvmlCall(field_ids.REMAP_HISTOGRAM, _remap_histogram),
    NvmlCall((field_ids.VIRTUAL_MODE,), _single(pynvml.nvmlDeviceGetVirtualizationMode)),
    NvmlCall((field_ids.VGPU_LICENSE_STATUS,), vgpu_license),
    *_later_links(),
)


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
