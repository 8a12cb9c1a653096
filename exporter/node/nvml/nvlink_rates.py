"""NVLink bandwidth from NVML's payload counters: the change between two passes, as DCGM computes it."""

from collections.abc import Collection, Mapping

from exporter.node.nvml.calls import NVLINK_RATES
from exporter.node.nvml.values import Answer, Rejected

Counted = tuple[int, int]
"""A counter in KiB and when it was read, µs."""


class LinkRates:
    """Remembers the counters of the last pass."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Counted] = {}

    def rates(
        self, uuid: str, counters: Mapping[str, tuple[Answer, int]], fields: Collection[int]
    ) -> dict[int, Answer]:
        """The fields of NVLINK_RATES from what was counted per direction now.

        KiB per second divided by 1000, the engine's "MB/s"; a counter that fell back gives no value.
        """
        parts = {way: self._rate((uuid, way), count, stamp) for way, (count, stamp) in counters.items()}
        return {field: _sum([parts[way] for way in NVLINK_RATES[field]]) for field in fields}

    def _rate(self, key: tuple[str, str], count: Answer, stamp: int) -> float | Rejected:
        if not isinstance(count, int):
            self._last.pop(key, None)
            return count if isinstance(count, Rejected) else Rejected("blank")
        before = self._last.get(key)
        self._last[key] = count, stamp
        if before is None or count < before[0] or stamp <= before[1]:
            return Rejected("blank")
        return (count - before[0]) * 1000 / (stamp - before[1])


def _sum(parts: list[float | Rejected]) -> Answer:
    total = 0.0
    for part in parts:
        if isinstance(part, Rejected):
            return part
        total += part
    return round(total)
