"""Reads the NVLinks of one GPU, each as an entity with fields of its own: state, errors, bandwidth and counters.

NVML does not list links: it is asked for the state of every number. Where no field of a link is wanted it is not asked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.nvml.calls.calls import LINK_ERROR_COUNTERS
from exporter.node.nvml.calls.field_values import NVLINK_BYTES, NVLINK_KIB, read_field_values
from exporter.node.nvml.calls.gpm import LINK_RATES, MIB, Gpm, SampleKey
from exporter.node.nvml.calls.nvlink_rates import KIB, NvlinkRates
from exporter.node.nvml.calls.prm_counters import COUNTERS, read_prm_counters
from exporter.node.nvml.native.values import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NvmlValue,
    RawValue,
    RejectedValue,
    is_unsupported,
    nvml_value,
    raw_reason,
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

BYTE_COUNTERS = ((NVLINK_KIB, KIB), (NVLINK_BYTES, 1))
"""Counters of what a link has carried, by direction, and how many bytes a count is. A GPU has one kind of them."""

READ_FIELDS = frozenset({field_ids.NVLINK_GET_STATE, *ERRORS, *RATES, *COUNTERS, *LINK_RATES})
"""Every field of a link that the source reads."""

LinkValues = dict[int, NvmlValue]
"""By field."""


class LinkReader:
    """Reads the links of one GPU in one session. For one thread at a time."""

    def __init__(self, rates: NvlinkRates, clock: Callable[[], float]) -> None:
        """`clock` must be monotonic."""
        self._rates = rates
        self._gpm = Gpm(clock)
        self._active: set[int] = set()
        """Links that are or were active: one that goes down is still read."""
        self._absent: set[int] = set()
        """Numbers of which the GPU has no link."""
        self._byte_counters: tuple[tuple[Mapping[str, int], int], ...] = BYTE_COUNTERS
        """Once a counter was read, only those of its kind."""

    def read(self, uuid: str, handle: Any, fields: Collection[int]) -> dict[int, LinkValues]:
        """Return these fields of every link by its number. Raises as `read_call` does."""
        self._find(handle)
        numbers = sorted(self._active)
        values: dict[int, LinkValues] = {number: {} for number in numbers}
        if not numbers:
            return values
        if field_ids.NVLINK_GET_STATE in fields:
            self._read_states(handle, values)
        if rates := [field for field in fields if field in RATES]:
            self._read_rates(uuid, handle, rates, values)
        if activity := [field for field in fields if field in LINK_RATES]:
            self._read_activity(uuid, handle, activity, values)
        if counters := [field for field in fields if field in COUNTERS]:
            for (number, field), value in read_prm_counters(handle, numbers, counters).items():
                values[number][field] = value
        for number in numbers:
            values[number] |= {field: _errors(handle, number, field) for field in fields if field in ERRORS}
        return values

    def forget_samples(self) -> None:
        """Free the samples of GPM: those from before the GPU was lost, and all of them before the session is closed."""
        self._gpm.close()

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

    def _read_states(self, handle: Any, values: Mapping[int, LinkValues]) -> None:
        results = read_field_values(handle, [(pynvml.NVML_FI_DEV_NVLINK_GET_STATE, number) for number in values])
        for own, (raw, _) in zip(values.values(), results, strict=True):
            own[field_ids.NVLINK_GET_STATE] = _value(field_ids.NVLINK_GET_STATE, raw)

    def _read_rates(self, uuid: str, handle: Any, fields: Sequence[int], values: Mapping[int, LinkValues]) -> None:
        """Add the rates of every link, of the first of BYTE_COUNTERS that the GPU has."""
        for number in values:
            values[number].update(dict.fromkeys(fields, rejected(NOT_SUPPORTED)))
        for ids, unit in self._byte_counters:
            results = read_field_values(handle, [(each, number) for number in values for each in ids.values()])
            if all(is_unsupported(count) for count, _ in results):
                continue
            self._byte_counters, counted = ((ids, unit),), iter(results)
            for number, own in values.items():
                counters = {direction: next(counted) for direction in ids}
                link = f"{uuid}/nvlink{number}"
                found = self._rates.rates(link, counters, [RATES[field] for field in fields], unit=unit)
                own.update({field: found[RATES[field]] for field in fields})
            return

    def _read_activity(self, uuid: str, handle: Any, fields: Sequence[int], values: Mapping[int, LinkValues]) -> None:
        """Add the rates that GPM gives, from two samples of the GPU: those of these fields alone."""
        key: SampleKey = (uuid, -1, ())
        keys = [(number, field) for number in values for field in fields]
        raws = self._gpm.metrics(key, handle, [LINK_RATES[field][number] for number, field in keys])
        for (number, field), raw in zip(keys, raws, strict=True):
            values[number][field] = _rate(raw)


def _rate(raw: float | RejectedValue) -> NvmlValue:
    if isinstance(raw, RejectedValue):
        return raw
    reason = raw_reason(raw)
    return round(raw * MIB) if reason is None else RejectedValue(reason)


def _value(field: int, raw: RawValue | RejectedValue) -> NvmlValue:
    return raw if isinstance(raw, RejectedValue) else nvml_value(field, raw)


def _errors(handle: Any, number: int, field: int) -> NvmlValue:
    try:
        raw = pynvml.nvmlDeviceGetNvLinkErrorCounter(handle, number, ERRORS[field])
    except pynvml.NVMLError as error:
        # "invalid argument" for a counter that links of this generation do not have
        return rejected(NOT_SUPPORTED if error.value == INVALID_ARGUMENT else error.value)
    return nvml_value(field, raw)
