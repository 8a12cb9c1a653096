"""CPU time of pieces of code and of whole processes; a busy machine changes it less than elapsed time."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BATCHES = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU for one run: of the batch that was disturbed least, and of the median batch."""

    least: float
    median: float

    @property
    def note(self) -> str:
        """The median, for the note of a row."""
        return f"median {self.median:.3f}"


def cost_of(run: Callable[[], object], rounds: int, clock: Callable[[], int] = time.thread_time_ns) -> Cost:
    """Measure `rounds` runs in batches. Whatever else the machine does can only make a batch cost more."""
    run()
    gc.collect()
    size = max(rounds // BATCHES, 1)
    return cost([_batch(run, size, clock) for _ in range(min(BATCHES, rounds))])


def cost(milliseconds: list[float]) -> Cost:
    """Make the cost of batches that were measured elsewhere."""
    return Cost(min(milliseconds), statistics.median(milliseconds))


def _batch(run: Callable[[], object], size: int, clock: Callable[[], int]) -> float:
    began = clock()
    for _ in range(size):
        run()
    return (clock() - began) / size / 1e6


def process_ms(pid: int) -> float:
    """Read the CPU time of all threads of a process so far, in milliseconds (schedstat of proc(5), in nanoseconds)."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6
