"""Measures CPU time in milliseconds, of a function that is run many times and of whole processes.

A busy machine changes CPU time less than elapsed time.
"""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GROUPS = 100
"""How many groups of runs are measured: the clock is read once per group, not once per run."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU for one run: of the group of runs that was disturbed least, and of the median group."""

    least: float
    median: float

    @property
    def note(self) -> str:
        """The median, for the note of a row."""
        return f"median {self.median:.3f}"


def cost_of(run: Callable[[], object], repetitions: int, clock: Callable[[], int] = time.thread_time_ns) -> Cost:
    """Measure `repetitions` runs in groups. Whatever else the machine does can only make a group cost more."""
    run()
    gc.collect()
    size = max(repetitions // GROUPS, 1)
    return cost([_group(run, size, clock) for _ in range(min(GROUPS, repetitions))])


def cost(milliseconds: list[float]) -> Cost:
    """Make the cost of figures that were measured elsewhere."""
    return Cost(min(milliseconds), statistics.median(milliseconds))


def _group(run: Callable[[], object], size: int, clock: Callable[[], int]) -> float:
    began = clock()
    for _ in range(size):
        run()
    return (clock() - began) / size / 1e6


def process_ms(pid: int) -> float:
    """Read the CPU time of all threads of a process so far, in milliseconds (schedstat of proc(5), in nanoseconds)."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6
