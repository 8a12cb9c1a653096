"""Reads the NVLinks of one GPU, each as an entity with fields of its own: state, errors and bandwidth.

NVML does not list links: it is asked for the state of every number. Where no field of a link is wanted it is not asked.
"""

from collections.abc import Collection, Mapping
from typing import Any

import pynvml

from exporter.node.devices import field_ids
from exporter.node.nvml.calls import LINK_ERROR_COUNTERS
from exporter.node.nvml.field_values import NVLINK_KIB, read_field_values
from exporter.node.nvml.nvlink_rates import NvlinkRates
from exporter.node.nvml.values import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NvmlValue,
    RawValue,
    RejectedValue,
    nvml_value,
    rejected,
)

ERRORS: Mapping[int, int] = {
    field: LINK_ERROR_COUNTERS[kind] for kind, field in field_ids.NVLINK_ERROR_COUNTS_PER_LINK.items()
}
"""DCGM field -> NVML's number of the counter."""

RATES: Mapping[int, int] = {
    field_ids.NVLINK_THROUGHPUT_PER_LINK: field_ids.NVLINK_BANDWIDTH_TOTAL,
    field_ids.NVLINK_TX_THROUGHPUT_PER_LINK: field_ids.NVLINK_TX_BANDWIDTH_TOTAL,
    field_ids.NVLINK_RX_THROUGHPUT_PER_LINK: field_ids.NVLINK_RX_BANDWIDTH_TOTAL,
}
"""DCGM field of a link -> that of the same quantity over all links."""

READ_FIELDS = frozenset({field_ids.NVLINK_GET_STATE, *ERRORS, *RATES})
"""Every field of a link that the source reads."""

LinkValues = dict[int, NvmlValue]
"""By field."""


class LinkReader:
    """Reads the links of one GPU in one session. For one thread at a time."""

    def __init__(self, rates: NvlinkRates) -> None:
        self._rates = rates
        self._active: set[int] = set()
        """Links that are or were active: one that goes down is still read."""
        self._absent: set[int] = set()
        """Numbers of which the GPU has no link."""

    def read(self, uuid: str, handle: Any, fields: Collection[int]) -> dict[int, LinkValues]:
        """Return these fields of every link by its number. Raises as `read_call` does."""
        self._find(handle)
        numbers = sorted(self._active)
        values: dict[int, LinkValues] = {number: {} for number in numbers}
        self._read_field_values(uuid, handle, fields, values)
        for number in numbers:
            values[number] |= {field: _errors(handle, number, field) for field in fields if field in ERRORS}
        return values

    def _find(self, handle: Any) -> None:
        for number in range(pynvml.NVML_NVLINK_MAX_LINKS):
            if number in self._active or number in self._absent:
                continue
            try:
                if pynvml.nvmlDeviceGetNvLinkState(handle, number) == pynvml.NVML_FEATURE_ENABLED:
                    self._active.add(number)
            except pynvml.NVMLError as error:
                rejected(error.value)
                if error.value in (INVALID_ARGUMENT, NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                    self._absent.add(number)

    def _read_field_values(
        self, uuid: str, handle: Any, fields: Collection[int], values: Mapping[int, LinkValues]
    ) -> None:
        """Add state and rates of every link to `values`, with one call for all."""
        state = [pynvml.NVML_FI_DEV_NVLINK_GET_STATE] if field_ids.NVLINK_GET_STATE in fields else []
        rates = [field for field in fields if field in RATES]
        ids = [*state, *(NVLINK_KIB.values() if rates else ())]
        requests = [(each, number) for number in values for each in ids]
        if not requests:
            return
        results = iter(read_field_values(handle, requests))
        for number, own in values.items():
            if state:
                own[field_ids.NVLINK_GET_STATE] = _value(field_ids.NVLINK_GET_STATE, next(results)[0])
            if rates:
                counters = {direction: next(results) for direction in NVLINK_KIB}
                found = self._rates.rates(f"{uuid}/nvlink{number}", counters, [RATES[field] for field in rates])
                own |= {field: found[RATES[field]] for field in rates}


def _value(field: int, raw: RawValue | RejectedValue) -> NvmlValue:
    return raw if isinstance(raw, RejectedValue) else nvml_value(field, raw)


def _errors(handle: Any, number: int, field: int) -> NvmlValue:
    try:
        raw = pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, number, ERRORS[field])
    except pynvml.NVMLError as error:
        # "invalid argument" for a counter that links of this generation do not have
        return rejected(NOT_SUPPORTED if error.value == INVALID_ARGUMENT else error.value)
    return nvml_value(field, raw)
