"""Engine activity from GPM (Hopper and newer): counters are sampled each pass, a value is the change between two.

Metric numbers and units are those of `nvml.h`: shares of time are percent, rates are MiB/s.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.nvml.values import NOT_SUPPORTED, Answer, Rejected, refusal, usable

SHORTEST = 0.1
"""Seconds that two samples must lie apart for their difference to mean something."""

RATIOS: Mapping[int, int] = {
    1001: 1, 1002: 2, 1003: 3, 1004: 5, 1005: 10, 1006: 11, 1007: 12, 1008: 13, 1013: 9, 1014: 7, 1015: 6, 1016: 4,
    **{1017 + n: 30 + n for n in range(8)},  # video decoders
    **{1025 + n: 40 + n for n in range(8)},  # JPEG decoders
    1033: 50, 1034: 51,
}  # fmt: skip
"""DCGM field -> GPM metric in percent; the field is a ratio."""

RATES: Mapping[int, int] = {
    1009: 20, 1010: 21, 1011: 61, 1012: 60, 1076: 100, 1077: 102, 1078: 101, 1079: 103,
    **{1040 + 2 * n: 63 + 2 * n for n in range(18)},  # NVLink n, sent
    **{1041 + 2 * n: 62 + 2 * n for n in range(18)},  # NVLink n, received
}  # fmt: skip
"""DCGM field -> GPM metric in MiB/s; the field is bytes per second."""

FIELDS = frozenset(RATIOS) | frozenset(RATES)
MIB = 1 << 20

Key = tuple[str, int, tuple[str, ...]]
"""A board's uuid, a GPU instance id (-1 for the whole board), and the `MIG-…` uuids inside: an instance made anew
under the same id is another one."""


def value_of(field: int, raw: float) -> Answer:
    """A GPM number in DCGM's unit; NaN is how GPM says that it has none."""
    if not usable(raw) or raw < 0:
        return Rejected("blank")
    return raw / 100 if field in RATIOS else round(raw * MIB)


@dataclass(slots=True)
class Pair:
    """Two sample buffers of the library: the last sample, and the one before, which the next one overwrites."""

    older: Any
    newer: Any
    since: float


class Gpm:
    """The pairs of every board and GPU instance that is read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pairs: dict[Key, Pair] = {}
        self._request = pynvml.c_nvmlGpmMetricsGet_t()

    def begin(self, key: Key, board: Any) -> bool:
        """Take the first sample of something not yet sampled. True when that happened just now."""
        if key in self._pairs:
            return False
        try:
            if not pynvml.nvmlGpmQueryDeviceSupport(board).isSupportedDevice:
                return False
            self._start(key, board)
        except pynvml.NVMLError:
            return False  # read() asks again and reports why
        return True

    def _start(self, key: Key, board: Any) -> None:
        older, newer = pynvml.nvmlGpmSampleAlloc(), None
        try:
            newer = pynvml.nvmlGpmSampleAlloc()
            _fill(key, board, newer)
        except pynvml.NVMLError:
            _free(older, newer)
            raise
        self._pairs[key] = Pair(older, newer, self._clock())

    def wait(self) -> float:
        """Seconds until every pair can be read."""
        youngest = max((pair.since for pair in self._pairs.values()), default=float("-inf"))
        return max(0.0, youngest + SHORTEST - self._clock())

    def read(self, key: Key, board: Any, fields: Collection[int]) -> dict[int, Answer]:
        """The change since the last pass. Raises BoardLostError; a first pass has nothing to compare with."""
        try:
            if not self._sample(key, board):
                return dict.fromkeys(fields, Rejected("blank"))
            return self._compare(self._pairs[key], fields)
        except pynvml.NVMLError as error:
            return dict.fromkeys(fields, refusal(error.value))

    def _sample(self, key: Key, board: Any) -> bool:
        """Take the sample of this pass. True when it can be compared with the one before."""
        pair = self._pairs.get(key)
        if pair is None:
            if not pynvml.nvmlGpmQueryDeviceSupport(board).isSupportedDevice:
                raise pynvml.NVMLError(NOT_SUPPORTED)
            self._start(key, board)
            return False
        if self._clock() - pair.since < SHORTEST:
            return False
        try:
            _fill(key, board, pair.older)
        except pynvml.NVMLError:
            self.forget(key)
            raise
        pair.older, pair.newer, pair.since = pair.newer, pair.older, self._clock()
        return True

    def _compare(self, pair: Pair, fields: Collection[int]) -> dict[int, Answer]:
        request = self._request
        request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(fields)
        request.sample1, request.sample2 = pair.older, pair.newer
        for slot, field in enumerate(fields):
            request.metrics[slot].metricId = RATIOS.get(field) or RATES[field]
        pynvml.nvmlGpmMetricsGet(request)
        return {
            field: refusal(metric.nvmlReturn) if metric.nvmlReturn else value_of(field, metric.value)
            for field, metric in zip(fields, request.metrics, strict=False)
        }

    def keep(self, keys: Collection[Key]) -> None:
        """Free what no longer exists."""
        for key in self._pairs.keys() - set(keys):
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Throw a pair away: the next sample starts a new one."""
        pair = self._pairs.pop(key, None)
        if pair is not None:
            _free(pair.older, pair.newer)

    def close(self) -> None:
        self.keep(())


def _fill(key: Key, board: Any, sample: Any) -> None:
    instance = key[1]
    if instance < 0:
        pynvml.nvmlGpmSampleGet(board, sample)
    else:
        pynvml.nvmlGpmMigSampleGet(board, instance, sample)


def _free(*samples: Any) -> None:
    for sample in filter(None, samples):
        with contextlib.suppress(pynvml.NVMLError):  # a library that was shut down took its memory along
            pynvml.nvmlGpmSampleFree(sample)
