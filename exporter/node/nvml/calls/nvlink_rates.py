"""Computes NVLink bandwidth from NVML's counters: the change between two collections, as DCGM does it."""

from collections.abc import Collection, Mapping

from exporter.node.nvml.calls.counter_rates import CounterRates
from exporter.node.nvml.calls.field_values import NVLINK_RATES
from exporter.node.nvml.native.values import NvmlValue, RejectedValue

KIB = 1024


class NvlinkRates:
    """Computes rates; keeps the counters of the last collection. Threads may use it at once for different GPUs."""

    def __init__(self) -> None:
        self._counters = CounterRates()

    def rates(
        self, uuid: str, counters: Mapping[str, tuple[NvmlValue, int]], fields: Collection[int], *, unit: int = KIB
    ) -> dict[int, NvmlValue]:
        """Return fields of NVLINK_RATES from this collection's counters by direction: (count, timestamp in µs).

        `unit` is how many bytes a count is. The unit of the fields is KiB per second divided by 1000, which DCGM calls
        MB/s.
        """
        by_direction = {
            name: self._counters.per_second((uuid, name, str(unit)), count, stamp)
            for name, (count, stamp) in counters.items()
        }
        return {field: _sum([by_direction[name] for name in NVLINK_RATES[field]], unit) for field in fields}


def _sum(rates: list[float | RejectedValue], unit: int) -> NvmlValue:
    """Return the sum, or the first rejected rate: half a sum would look like a drop in traffic."""
    total = 0.0
    for rate in rates:
        if isinstance(rate, RejectedValue):
            return rate
        total += rate
    return round(total * unit / KIB / 1000)
