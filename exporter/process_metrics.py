"""The `process_…` metrics, under the names that client libraries give them, for half of what their collector costs."""

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_PAGE = resource.getpagesize()


class ProcessMetrics(Collector):
    """Memory, CPU and descriptors as the kernel counts them; without /proc, what is known without it."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._own = proc / "self"
        self._started = _started(proc)

    def collect(self) -> Iterator[Metric]:
        yield from self._memory()
        if self._started is not None:
            yield _gauge("start_time_seconds", "Start time of the process since unix epoch in seconds.", self._started)
        text = "Total user and system CPU time spent in seconds."
        yield CounterMetricFamily("process_cpu_seconds_total", text, value=time.process_time())
        try:
            open_fds = len(os.listdir(self._own / "fd"))  # noqa: PTH208 - names are enough
        except OSError:
            return
        yield _gauge("open_fds", "Number of open file descriptors.", open_fds)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield _gauge("max_fds", "Maximum number of open file descriptors.", limit)

    def _memory(self) -> Iterator[Metric]:
        try:
            pages = (self._own / "statm").read_bytes().split()
        except OSError:
            return
        yield _gauge("virtual_memory_bytes", "Virtual memory size in bytes.", int(pages[0]) * _PAGE)
        yield _gauge("resident_memory_bytes", "Resident memory size in bytes.", int(pages[1]) * _PAGE)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"process_{name}", text, value=value)


def _started(proc: Path) -> float | None:
    """Unix seconds: boot time plus the ticks after it (proc(5)); None where that cannot be read."""
    try:
        ticks = int((proc / "self" / "stat").read_bytes().rpartition(b")")[2].split()[19])
        boot = next(line for line in (proc / "stat").read_bytes().splitlines() if line.startswith(b"btime "))
    except (OSError, StopIteration):
        return None
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
