"""The calls for quantities whose field value a driver or a GPU does not have, as on drivers older than the field value.

Each has the same unit and meaning as the field value of the same DCGM field. A call that is not supported either is
asked once, and not again while the session with the library lasts: nothing that is read then costs more.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.nvml.calls.calls import NvmlCall, read_call
from exporter.node.nvml.native.values import NvmlValue, RawValue, is_unsupported

POLICIES: Mapping[int, int] = {
    field_ids.POWER_VIOLATION: pynvml.NVML_PERF_POLICY_POWER,
    field_ids.THERMAL_VIOLATION: pynvml.NVML_PERF_POLICY_THERMAL,
    field_ids.SYNC_BOOST_VIOLATION: pynvml.NVML_PERF_POLICY_SYNC_BOOST,
    field_ids.BOARD_LIMIT_VIOLATION: pynvml.NVML_PERF_POLICY_BOARD_LIMIT,
    field_ids.LOW_UTIL_VIOLATION: pynvml.NVML_PERF_POLICY_LOW_UTILIZATION,
    field_ids.RELIABILITY_VIOLATION: pynvml.NVML_PERF_POLICY_RELIABILITY,
    field_ids.TOTAL_APP_CLOCKS_VIOLATION: pynvml.NVML_PERF_POLICY_TOTAL_APP_CLOCKS,
    field_ids.TOTAL_BASE_CLOCKS_VIOLATION: pynvml.NVML_PERF_POLICY_TOTAL_BASE_CLOCKS,
}
"""DCGM field -> what reduced the clocks."""

_CORRECTED, _UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
ECC_TOTALS: Mapping[int, tuple[int, int]] = {
    field_ids.ECC_SBE_VOL_TOTAL: (_CORRECTED, pynvml.NVML_VOLATILE_ECC),
    field_ids.ECC_DBE_VOL_TOTAL: (_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    field_ids.ECC_SBE_AGG_TOTAL: (_CORRECTED, pynvml.NVML_AGGREGATE_ECC),
    field_ids.ECC_DBE_AGG_TOTAL: (_UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
}
"""DCGM field -> kind of errors, and since when they are counted."""

RETIREMENT_CAUSES: Mapping[int, int] = {
    field_ids.RETIRED_SBE: pynvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
    field_ids.RETIRED_DBE: pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
}

REMAPPED_ROWS = (
    field_ids.CORRECTABLE_REMAPPED_ROWS,
    field_ids.UNCORRECTABLE_REMAPPED_ROWS,
    field_ids.ROW_REMAP_PENDING,
    field_ids.ROW_REMAP_FAILURE,
)
"""In the order of nvmlDeviceGetRemappedRows."""


def _violation(policy: int) -> Callable[[Any], tuple[RawValue]]:
    # The time is in nanoseconds, as in the field value. To be removed in CUDA 14.0, where every driver has the latter.
    return lambda handle: (pynvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime,)


def _ecc_total(kind: int, since: int) -> Callable[[Any], tuple[RawValue]]:
    return lambda handle: (pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, since),)


def _retired_pages(cause: int) -> Callable[[Any], tuple[RawValue]]:
    # Their number is the same in both versions of the call, and pynvml asks the second for it with an argument missing.
    return lambda handle: (len(pynvml.nvmlDeviceGetRetiredPages(handle, cause)),)


def _pages_pending(handle: Any) -> tuple[RawValue]:
    return (pynvml.nvmlDeviceGetRetiredPagesPendingStatus(handle),)


def _energy(handle: Any) -> tuple[RawValue]:
    return (pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),)


def _pcie_replays(handle: Any) -> tuple[RawValue]:
    return (pynvml.nvmlDeviceGetPcieReplayCounter(handle),)


def _remapped_rows(handle: Any) -> tuple[RawValue | None, ...]:
    return tuple(pynvml.nvmlDeviceGetRemappedRows(handle))


OLDER_CALLS: tuple[NvmlCall, ...] = (
    NvmlCall((field_ids.TOTAL_ENERGY_CONSUMPTION,), _energy),
    NvmlCall((field_ids.PCIE_REPLAY_COUNTER,), _pcie_replays),
    *(NvmlCall((field,), _violation(policy)) for field, policy in POLICIES.items()),
    *(NvmlCall((field,), _ecc_total(*which)) for field, which in ECC_TOTALS.items()),
    *(NvmlCall((field,), _retired_pages(cause)) for field, cause in RETIREMENT_CAUSES.items()),
    NvmlCall((field_ids.RETIRED_PENDING,), _pages_pending),
    NvmlCall(REMAPPED_ROWS, _remapped_rows),
)


def older_calls_for(fields: Collection[int]) -> tuple[NvmlCall, ...]:
    """Return the calls that can stand for the field values of these fields."""
    return tuple(call for call in OLDER_CALLS if not set(fields).isdisjoint(call.fields))


class OlderCalls:
    """Makes the older calls of the devices of one GPU. For one thread at a time."""

    def __init__(self) -> None:
        self._unsupported: set[tuple[int, ...]] = set()
        """The fields of the calls that are not supported either."""

    def read(self, calls: Collection[NvmlCall], handle: Any, values: Mapping[int, NvmlValue]) -> dict[int, NvmlValue]:
        """Read those of `values` that are not supported as field values. Raises as `read_call` does."""
        found: dict[int, NvmlValue] = {}
        for call in calls:
            missing = [field for field in call.fields if is_unsupported(values.get(field))]
            if missing and call.fields not in self._unsupported:
                read = read_call(call, handle)
                found |= {field: read[field] for field in missing}
                if all(map(is_unsupported, read.values())):
                    self._unsupported.add(call.fields)
        return found
