"""Makes one utilization of each process from the samples that NVML returns of them. No I/O, no state.

The driver samples the processes of a GPU several times a second into a ring. Of each process NVML returns the samples
since the read before, or only their average, with the time of the last (seen in go-nvml issue 51, where every process
has one sample and each another time). Several samples of a process are weighted with their periods, and never added up.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

TICK_US = 20_000
"""Samples that are less than this apart are of one tick: the driver takes those of all processes at once, a few times
a second."""
FULL_RING = 60
"""From so many samples on, older ones may have been lost: a ring has 72 or 100, by the version of the driver
(NV2080_CTRL_PERF_GPUMON_SAMPLE_COUNT_PERFMON_UTIL in NVIDIA's open kernel modules)."""
JITTER = 1.5
"""A gap of up to so many periods is one period; in a longer one the GPU was idle."""
MOST_PERCENT = 100


class SmSample(NamedTuple):
    """One sample of one process."""

    pid: int
    at: int
    """Unix microseconds, at the end of its period."""
    percent: int


def sampling_period(samples: Iterable[SmSample], known: int | None) -> int | None:
    """Return the shortest time between two samples of one process, in microseconds, of these and those before.

    None while no process had two samples at once: then each is an average.
    """
    times: dict[int, list[int]] = {}
    for each in samples:
        times.setdefault(each.pid, []).append(each.at)
    gaps = [later - at for own in times.values() for at, later in pairwise(sorted(own)) if later - at >= TICK_US]
    return min([*gaps, *([] if known is None else [known])], default=None)


def utilizations(samples: Sequence[SmSample], since: int, period: int | None) -> dict[int, float]:
    """Return the utilization of each process, 0 to 1, from `since` (Unix microseconds) to the newest sample.

    Without a `period` each sample is an average already. Samples that cannot be true are left out.
    """
    usable = sorted((each for each in samples if each.at > since and each.percent <= MOST_PERCENT), key=_time)
    if period is None:
        return {each.pid: each.percent / MOST_PERCENT for each in usable}
    if not usable:
        return {}
    if len(usable) >= FULL_RING:  # what came before the oldest is not known
        since = max(since, usable[0].at - period)
    sums: dict[int, float] = {}
    before = since
    for at, percents in _ticks(usable):
        length = at - before if at - before <= JITTER * period else period
        for pid, percent in percents.items():
            sums[pid] = sums.get(pid, 0.0) + percent * length
        before = at
    return {pid: total / (before - since) / MOST_PERCENT for pid, total in sums.items()}


def _time(sample: SmSample) -> int:
    return sample.at


def _ticks(samples: Iterable[SmSample]) -> list[tuple[int, dict[int, int]]]:
    """Return the samples that were taken at once, in per cent by PID, with the time of the last of them."""
    ticks: list[tuple[int, dict[int, int]]] = []
    first = 0
    for pid, at, percent in samples:
        if not ticks or at - first >= TICK_US:
            ticks.append((at, {}))
            first = at
        ticks[-1] = at, ticks[-1][1] | {pid: percent}
    return ticks
