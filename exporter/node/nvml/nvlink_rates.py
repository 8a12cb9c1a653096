"""Computes NVLink bandwidth from NVML's payload counters: the change between two collections, as DCGM does it."""

from collections.abc import Collection, Mapping

from exporter.node.devices.readings import RejectionReason
from exporter.node.nvml.field_values import NVLINK_RATES
from exporter.node.nvml.values import NvmlValue, RejectedValue

CounterReading = tuple[int, int]
"""A counter in KiB and the time of its reading in µs."""


class NvlinkRates:
    """Computes rates; keeps the counters of the last collection. Threads may use it at once for different GPUs."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], CounterReading] = {}

    def rates(
        self, uuid: str, counters: Mapping[str, tuple[NvmlValue, int]], fields: Collection[int]
    ) -> dict[int, NvmlValue]:
        """Return fields of NVLINK_RATES from this collection's counters by direction: (KiB, timestamp in µs).

        The unit is KiB per second divided by 1000, which DCGM calls MB/s. A counter that went down gives a blank.
        """
        by_direction = {name: self._rate((uuid, name), count, stamp) for name, (count, stamp) in counters.items()}
        return {field: _sum([by_direction[name] for name in NVLINK_RATES[field]]) for field in fields}

    def _rate(self, key: tuple[str, str], count: NvmlValue, stamp: int) -> float | RejectedValue:
        if not isinstance(count, int):
            self._last.pop(key, None)
            return count if isinstance(count, RejectedValue) else RejectedValue(RejectionReason.BLANK)
        before = self._last.get(key)
        self._last[key] = count, stamp
        if before is None or count < before[0] or stamp <= before[1]:
            return RejectedValue(RejectionReason.BLANK)
        # KiB / 1000 per second = KiB * 1000 per µs
        return (count - before[0]) * 1000 / (stamp - before[1])


def _sum(rates: list[float | RejectedValue]) -> NvmlValue:
    """Return the sum, or the first rejected rate: half a sum would look like a drop in traffic."""
    total = 0.0
    for rate in rates:
        if isinstance(rate, RejectedValue):
            return rate
        total += rate
    return round(total)
