"""Reads each GPU in a worker thread, so that a call into the driver that hangs costs its own GPU and no other.

The GPUs are read one after another by one worker. When one takes longer than STALL_SECONDS, those that are left get a
worker each; the stuck worker stays in its call, which nothing can end, and its GPU is left out until the call returns.
NVML may be called by several threads at once (NVML reference, "thread safety").
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

STALL_SECONDS = 0.1
"""How long one GPU may take before those after it get workers of their own; a healthy one takes a few milliseconds."""


@dataclass(slots=True, eq=False)
class _Task(Generic[T]):
    """What is read of one GPU. The reading thread makes it; after that only a thread that has the lock writes to it."""

    gpu: int
    function: Callable[[], T]
    results: list[T] = field(default_factory=list)
    error: Exception | None = None
    ended: bool = False

    def run(self) -> None:
        try:
            self.results.append(self.function())
        except Exception as error:  # noqa: BLE001 - raised again in the reading thread
            self.error = error


class ContainedCalls(Generic[T]):
    """Runs functions that may not return, one per GPU. Its methods are for one thread, the reading thread.

    There is at most one worker per GPU and one more. A GPU that was given up is read again once its call has returned,
    but nothing waits for it before it has answered within the time once.
    """

    def __init__(self) -> None:
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        """For workers: there are tasks, or too many workers."""
        self._progress = threading.Condition(lock)
        """For the reading thread: tasks have ended."""
        self._pending: deque[_Task[T]] = deque()
        self._running: dict[int, _Task[T]] = {}
        """By GPU. Across runs these are the calls that have not returned."""
        self._late: set[int] = set()
        """GPUs that were given up and have not answered in time since."""
        self._seconds = 0.0
        self._ended_at = 0.0
        self._workers = 0
        self._spare = 0
        """How many workers wait for the next tasks: one, and none after `release`."""

    def run(self, functions: Mapping[int, Callable[[], T]], seconds: float) -> dict[int, T]:
        """Run the functions, by GPU; return the results of those that returned within so many seconds.

        Where none has returned, nothing can be read at all: that is waited for without end, and the parent process ends
        this one. Raises the exception of a function that raised one.
        """
        with self._work:
            tasks = [_Task(gpu, function) for gpu, function in functions.items() if gpu not in self._running]
            tasks.sort(key=lambda task: task.gpu in self._late)
            self._seconds, self._spare = seconds, 1
            self._pending.extend(tasks)
            late = sum(task.gpu in self._late for task in tasks)
            self._start_workers(len(self._running) + 1 + late)  # so that no late GPU waits for another one
            self._work.notify_all()
            self._wait(tasks, time.monotonic() + seconds)
            self._pending.clear()
            self._late.update(task.gpu for task in tasks if not task.ended)
            ended = [task for task in tasks if task.ended]
        for task in ended:
            if task.error is not None:
                raise task.error
        return {task.gpu: task.results[0] for task in ended}

    def unreturned(self) -> frozenset[int]:
        """The GPUs whose calls have not returned."""
        with self._work:
            return frozenset(self._running)

    def release(self) -> None:
        """End every worker that is in no call, until the next `run`."""
        with self._work:
            self._spare = 0
            self._work.notify_all()

    def _wait(self, tasks: Sequence[_Task[T]], until: float) -> None:
        """Wait for the tasks, with the lock held. After a stall, give every pending task a worker."""
        ended_before = -1
        while left := [task for task in tasks if not task.ended]:
            ended = len(tasks) - len(left)
            # All calls may return at once after the whole library hung: so none is given up right after the first one.
            settled = self._ended_at + STALL_SECONDS
            expected = any(task.gpu not in self._late for task in left)
            rest = (max(until, settled) if expected else settled) - time.monotonic()
            if ended and rest <= 0:
                return
            if self._pending and ended == ended_before:
                self._start_workers(len(self._running) + len(self._pending))
            ended_before = ended
            self._progress.wait(min(rest, STALL_SECONDS) if rest > 0 else STALL_SECONDS)

    def _start_workers(self, count: int) -> None:
        for _ in range(count - self._workers):
            # A daemon, which does not keep the process from ending: a call that hangs would.
            threading.Thread(target=self._run_worker, name="gpu-reader", daemon=True).start()
            self._workers += 1

    def _run_worker(self) -> None:
        with self._work:
            while True:
                while not self._pending:
                    if self._workers > len(self._running) + self._spare:
                        self._workers -= 1
                        return
                    self._work.wait()
                self._run_task(self._pending.popleft())

    def _run_task(self, task: _Task[T]) -> None:
        """Run one task without the lock, which is held before and after."""
        self._running[task.gpu] = task
        self._work.release()
        began = time.monotonic()
        task.run()
        now = time.monotonic()
        self._work.acquire()
        del self._running[task.gpu]
        task.ended, self._ended_at = True, now
        if now - began <= self._seconds:
            self._late.discard(task.gpu)
        if not self._pending:
            self._progress.notify()
