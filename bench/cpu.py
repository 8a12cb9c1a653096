"""CPU time of pieces of code and of whole processes, so that a busy machine disturbs the figures little."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

BATCHES = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU for one run: of the least disturbed batch, and of the middle one."""

    least: float
    middle: float

    @property
    def note(self) -> str:
        return f"median {self.middle:.3f}"


def cost_of(run: Callable[[], object], rounds: int, clock: Callable[[], int] = time.thread_time_ns) -> Cost:
    """What one run costs, from `rounds` of them in batches; other work only ever adds to it."""
    run()
    gc.collect()
    size = max(rounds // BATCHES, 1)
    return cost([_batch(run, size, clock) for _ in range(min(BATCHES, rounds))])


def cost(milliseconds: list[float]) -> Cost:
    """Of batches that were measured elsewhere."""
    return Cost(min(milliseconds), median(milliseconds))


def _batch(run: Callable[[], object], size: int, clock: Callable[[], int]) -> float:
    began = clock()
    for _ in range(size):
        run()
    return (clock() - began) / size / 1e6


def process_ms(pid: int) -> float:
    """CPU of all threads of a process so far in milliseconds, to the nanosecond (schedstat of proc(5))."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6
