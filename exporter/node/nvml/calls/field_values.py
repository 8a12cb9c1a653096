"""Reads DCGM fields as NVML's field values: many ids in one call, each with a return code and a time of its own.

Ids and units are those of `nvml.h` (checked against nvidia-ml-py 13.615.71).
"""

from collections.abc import Mapping
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.native.values import INVALID_ARGUMENT, NOT_SUPPORTED, RawValue, RejectedValue, rejected

ALL_LINKS = 0xFFFFFFFF
"""Scope id of an NVLink field value: the sum over all links (`nvml.h`; any other scope id is the number of a link)."""

LINKS_WITH_FIELD_VALUES = 12
"""NVML has field values of the errors of these links of a GPU; those of further ones have a call (calls.py)."""


def _constant(name: str) -> int:
    value: int = getattr(pynvml, f"NVML_FI_DEV_{name}")
    return value


FIELD_VALUES: Mapping[int, int] = {
    field_ids.MEMORY_TEMP: pynvml.NVML_FI_DEV_MEMORY_TEMP,
    field_ids.TOTAL_ENERGY_CONSUMPTION: pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
    field_ids.POWER_USAGE_INSTANT: pynvml.NVML_FI_DEV_POWER_INSTANT,
    field_ids.PCIE_REPLAY_COUNTER: pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER,
    field_ids.ECC_CURRENT: pynvml.NVML_FI_DEV_ECC_CURRENT,
    field_ids.ECC_SBE_VOL_TOTAL: pynvml.NVML_FI_DEV_ECC_SBE_VOL_TOTAL,
    field_ids.ECC_DBE_VOL_TOTAL: pynvml.NVML_FI_DEV_ECC_DBE_VOL_TOTAL,
    field_ids.ECC_SBE_AGG_TOTAL: pynvml.NVML_FI_DEV_ECC_SBE_AGG_TOTAL,
    field_ids.ECC_DBE_AGG_TOTAL: pynvml.NVML_FI_DEV_ECC_DBE_AGG_TOTAL,
    field_ids.POWER_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_POWER,
    field_ids.THERMAL_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL,
    field_ids.SYNC_BOOST_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST,
    field_ids.BOARD_LIMIT_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT,
    field_ids.LOW_UTIL_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION,
    field_ids.RELIABILITY_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY,
    field_ids.TOTAL_APP_CLOCKS_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS,
    field_ids.TOTAL_BASE_CLOCKS_VIOLATION: pynvml.NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS,
    field_ids.RETIRED_SBE: pynvml.NVML_FI_DEV_RETIRED_SBE,
    field_ids.RETIRED_DBE: pynvml.NVML_FI_DEV_RETIRED_DBE,
    field_ids.RETIRED_PENDING: pynvml.NVML_FI_DEV_RETIRED_PENDING,
    field_ids.UNCORRECTABLE_REMAPPED_ROWS: pynvml.NVML_FI_DEV_REMAPPED_UNC,
    field_ids.CORRECTABLE_REMAPPED_ROWS: pynvml.NVML_FI_DEV_REMAPPED_COR,
    field_ids.ROW_REMAP_FAILURE: pynvml.NVML_FI_DEV_REMAPPED_FAILURE,
    field_ids.ROW_REMAP_PENDING: pynvml.NVML_FI_DEV_REMAPPED_PENDING,
    field_ids.NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL: pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    field_ids.NVLINK_CRC_DATA_ERROR_COUNT_TOTAL: pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    field_ids.NVLINK_REPLAY_ERROR_COUNT_TOTAL: pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    field_ids.NVLINK_RECOVERY_ERROR_COUNT_TOTAL: pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
    field_ids.CLOCKS_EVENT_REASON_SW_POWER_CAP_NS: pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
    field_ids.CLOCKS_EVENT_REASON_SYNC_BOOST_NS: pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST,
    field_ids.CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS: pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
    field_ids.CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS: pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
    field_ids.CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS: (
        pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN
    ),
    field_ids.PCIE_COUNT_CORRECTABLE_ERRORS: pynvml.NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS,
    field_ids.GPU_RECOVERY_ACTION: pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
    field_ids.ECC_PENDING: pynvml.NVML_FI_DEV_ECC_PENDING,
    **{field: _constant(f"ECC_{name}") for name, field in field_ids.ECC_COUNTS.items()},
    field_ids.ECC_DBE_VOL_CBU: pynvml.NVML_FI_DEV_ECC_DBE_VOL_CBU,
    field_ids.ECC_DBE_AGG_CBU: pynvml.NVML_FI_DEV_ECC_DBE_AGG_CBU,
    field_ids.C2C_LINK_COUNT: pynvml.NVML_FI_DEV_C2C_LINK_COUNT,
    field_ids.C2C_LINK_STATUS: pynvml.NVML_FI_DEV_C2C_LINK_GET_STATUS,
    field_ids.C2C_MAX_BANDWIDTH: pynvml.NVML_FI_DEV_C2C_LINK_GET_MAX_BW,
    field_ids.C2C_LINK_ERROR_INTR: pynvml.NVML_FI_DEV_C2C_LINK_ERROR_INTR,
    field_ids.C2C_LINK_ERROR_REPLAY: pynvml.NVML_FI_DEV_C2C_LINK_ERROR_REPLAY,
    field_ids.C2C_LINK_ERROR_REPLAY_B2B: pynvml.NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B,
    field_ids.C2C_LINK_POWER_STATE: pynvml.NVML_FI_DEV_C2C_LINK_POWER_STATE,
    **{
        field: _constant(f"NVLINK_{kind}_ERROR_COUNT_L{number}")
        for kind, each_link in field_ids.NVLINK_ERROR_COUNTS.items()
        for number, field in enumerate(each_link[:LINKS_WITH_FIELD_VALUES])
    },
    field_ids.NVLINK_ECC_DATA_ERROR_COUNT_TOTAL: pynvml.NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL,
    **{field: _constant(f"NVLINK_COUNT_{name}") for name, field in field_ids.NVLINK_5_COUNTS.items()},
    field_ids.NVLINK_COUNT_SYMBOL_BER_FLOAT: pynvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER,
    field_ids.NVLINK_COUNT_EFFECTIVE_BER_FLOAT: pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER,
}
"""DCGM field -> id of the field value that is the same quantity in the same unit (POWER_USAGE_INSTANT: milliwatts;
the error ratios: mantissa and exponent).

The counters of NVLink 5 are read with the scope ALL_LINKS, the others with scope id 0. For POWER_USAGE_INSTANT that is
the GPU's own power (NVML_POWER_SCOPE_GPU); the others have no scope.
"""

OF_ALL_LINKS = frozenset({*field_ids.NVLINK_5_COUNTS.values(), *field_ids.NVLINK_BIT_ERROR_RATIOS})
"""The fields of FIELD_VALUES with the scope ALL_LINKS."""

NVLINK_KIB: Mapping[str, int] = {
    "tx": pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
    "rx": pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
}
"""Payload counters in KiB, summed over all links with the scope ALL_LINKS."""

NVLINK_BYTES: Mapping[str, int] = {
    "tx": pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES,
    "rx": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES,
}
"""Counters in bytes of NVLink 5 (Blackwell and newer), for GPUs without those in KiB. Summed as those."""

PCIE_BYTES: Mapping[int, int] = {
    field_ids.PCIE_TX_BYTES: pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
    field_ids.PCIE_RX_BYTES: pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
}
"""DCGM field, in bytes per second -> the counter in bytes, for GPUs without GPM (newer ones have it)."""

NVLINK_RATES: Mapping[int, tuple[str, ...]] = {
    field_ids.NVLINK_BANDWIDTH_TOTAL: ("tx", "rx"),
    field_ids.NVLINK_TX_BANDWIDTH_TOTAL: ("tx",),
    field_ids.NVLINK_RX_BANDWIDTH_TOTAL: ("rx",),
}
"""DCGM field -> the directions whose rates it sums."""

_FIELD_VALUE_MEMBER = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of the union `nvmlValue_t`, in the order of `nvmlValueType_t`."""


def request_for(field: int) -> tuple[int, int]:
    """Return (NVML_FI_* id, scope id) for a field of FIELD_VALUES."""
    return FIELD_VALUES[field], ALL_LINKS if field in OF_ALL_LINKS else 0


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
    return union_value(record.nvmlReturn, record.valueType, record.value)


def union_value(code: int, kind: int, union: Any) -> RawValue | RejectedValue:
    """Return one value of a call that succeeds as a whole, in which each value has a return code and a type of its own.

    A driver that does not have the id returns "invalid argument" for it. Raises as `read_call` does.
    """
    code = NOT_SUPPORTED if code == INVALID_ARGUMENT else code
    if code:
        return rejected(code)
    if kind >= len(_FIELD_VALUE_MEMBER):
        return RejectedValue(RejectionReason.NOT_SUPPORTED)
    raw: RawValue = getattr(union, _FIELD_VALUE_MEMBER[kind])
    return raw
