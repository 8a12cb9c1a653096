"""Computes rates from counters of NVML: the change between two collections, by the library's own timestamps."""

from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.native.values import NvmlValue, RejectedValue

CounterKey = tuple[str, ...]
"""What is counted: UUID of the GPU, and names."""


class CounterRates:
    """Keeps the counters of the last collection. Threads may use it at once for different GPUs."""

    def __init__(self) -> None:
        self._last: dict[CounterKey, tuple[int, int]] = {}

    def per_second(self, key: CounterKey, count: NvmlValue, stamp: int) -> float | RejectedValue:
        """Return the rate since the last count; `stamp` is the time of this one in µs.

        The first count gives a blank, and one that is lower than the last: the counter was reset, or wrapped around at
        a width that is not documented. A count that was rejected gives its reason.
        """
        if not isinstance(count, int):
            self._last.pop(key, None)
            return count if isinstance(count, RejectedValue) else RejectedValue(RejectionReason.BLANK)
        before = self._last.get(key)
        self._last[key] = count, stamp
        if before is None or count < before[0] or stamp <= before[1]:
            return RejectedValue(RejectionReason.BLANK)
        return (count - before[0]) * 1e6 / (stamp - before[1])
