"""Measures running exporters of any kind side by side: scrape time, CPU and memory. They must run on this machine.

    python -m bench.exporters TARGET [TARGET ...] [--scrapes 200] [--pause 0.2] [--compare]

A TARGET is the URL of `/metrics`, or the id of the process that serves it. The exporters are scraped in turns, so that
whatever else the machine does affects all of them. With --compare, names, labels and values of the first two are
compared.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

from bench.cpu import process_ms
from bench.difference import difference
from bench.process import memory
from bench.table import BenchSection, Figure

LISTENING = "0A"
"""The state of a socket that listens, in the tables of proc(5)."""
HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}


class TargetError(Exception):
    """A target that cannot be measured; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """An exporter that runs: where it is scraped, and its process."""

    url: str
    pid: int

    def processes(self) -> list[int]:
        """The process and all of its descendants that run now."""
        return [self.pid, *descendants(self.pid)]


@dataclass(slots=True)
class Measured:
    """What was measured of one exporter. CPU is that of all its processes, in milliseconds."""

    idle: float
    """For one second in which nobody scrapes."""
    taken: list[float]
    """Milliseconds of each scrape."""
    cpu: float
    """For one scrape, beyond what the same time costs without scrapes."""
    share: float
    """Proportional share of memory of all processes, in MiB."""
    size: int
    """Bytes of a response, compressed if the exporter compresses."""


def descendants(pid: int) -> Iterator[int]:
    """Children, and their children, of all threads of a process."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            yield child
            yield from descendants(child)


def target(given: str) -> Target:
    """Find out what was not given: the process by its port, or the port by its process. Raises TargetError."""
    if given.isdigit():
        ports = [port for port, inode in _listening() if inode in _sockets(int(given))]
        if not ports:
            raise TargetError(f"{given}: there is no such process, or it does not listen")
        return Target(f"http://127.0.0.1:{ports[0]}/metrics", int(given))
    parts = urlsplit(given)
    inodes = {inode for port, inode in _listening() if port == (parts.port or 80)}
    pids = [
        int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and inodes & _sockets(int(each.name))
    ]
    if parts.scheme != "http" or not pids:
        raise TargetError(f"{given}: not an http:// URL, or no process of this machine listens there")
    return Target(given, min(pids))


def _listening() -> Iterator[tuple[int, str]]:
    """Port and inode of every TCP socket that listens."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING:
                yield int(words[1].rpartition(":")[2], 16), words[9]


def _sockets(pid: int) -> set[str]:
    """Inodes of the sockets of a process. Empty for a process that ended or belongs to somebody else."""
    found = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                found.add(str(descriptor.readlink()))
    return {link[8:-1] for link in found if link.startswith("socket:[")}


def _cpu(target: Target) -> float:
    return sum(process_ms(pid) for pid in target.processes())


class Scraper:
    """Scrapes one exporter over one connection, as Prometheus does."""

    def __init__(self, target: Target) -> None:
        parts = urlsplit(target.url)
        self._path = parts.path or "/metrics"
        self._connection = HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=30)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def scrape(self, headers: dict[str, str] | None = None) -> tuple[float, bytes]:
        """Scrape once. Returns milliseconds, and the response. Raises TargetError for one that is no exposition."""
        began = time.perf_counter()
        self._connection.request("GET", self._path, headers=HEADERS if headers is None else headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200 or not body:
            raise TargetError(f"{self._path}: status {response.status}, {len(body)} bytes")
        return (time.perf_counter() - began) * 1000, body


def measure(targets: Sequence[Target], scrapes: int, pause: float) -> list[Measured]:
    """Wait as long as the scrapes will take, then scrape all exporters in turns, `pause` seconds after each turn."""
    for each in targets:
        _text(each)  # the first scrape makes what later ones use again
    idle = _per_second(targets, scrapes * pause)
    with ExitStack() as stack:
        scrapers = [stack.enter_context(closing(Scraper(each))) for each in targets]
        before, began = [_cpu(each) for each in targets], time.monotonic()
        taken, sizes = _in_turns(scrapers, scrapes, pause)
        seconds = time.monotonic() - began
    cpu = [(_cpu(each) - b - i * seconds) / scrapes for each, b, i in zip(targets, before, idle, strict=True)]
    shares = [sum(memory(pid).share for pid in each.processes()) for each in targets]
    return list(map(Measured, idle, taken, cpu, shares, sizes))


def _in_turns(scrapers: Sequence[Scraper], scrapes: int, pause: float) -> tuple[list[list[float]], list[int]]:
    """Scrape. Returns the milliseconds of all scrapes and the bytes of the last response, of each exporter."""
    taken: list[list[float]] = [[] for _ in scrapers]
    sizes = [0] * len(scrapers)
    for _ in range(scrapes):
        time.sleep(pause)
        for number, scraper in enumerate(scrapers):
            milliseconds, body = scraper.scrape()
            taken[number].append(milliseconds)
            sizes[number] = len(body)
    return taken, sizes


def _per_second(targets: Sequence[Target], seconds: float) -> list[float]:
    before, began = [_cpu(each) for each in targets], time.monotonic()
    time.sleep(seconds)
    return [(_cpu(each) - b) / (time.monotonic() - began) for each, b in zip(targets, before, strict=True)]


def section(target: Target, measured: Measured) -> BenchSection:
    """Write what was measured of one exporter."""
    cuts = quantiles(measured.taken, n=100)
    rows = [
        Figure("scrape time, median", cuts[49], "ms"),
        Figure("scrape time, p95", cuts[94], "ms"),
        Figure("scrape time, p99", cuts[98], "ms"),
        Figure("CPU of one scrape", measured.cpu, "ms"),
        Figure("CPU of one second without scrapes", measured.idle, "ms"),
        Figure("memory, proportional share of all processes", measured.share, "MiB"),
    ]
    number = len(target.processes())
    return BenchSection(f"{target.url}: {number} process{'es'[: 2 * (number > 1)]}", rows, [f"{measured.size:,} bytes"])


def _run(given: Sequence[str], scrapes: int, pause: float, *, compare: bool) -> Iterable[str]:
    targets = [target(each) for each in given]
    for each, measured in zip(targets, measure(targets, scrapes, pause), strict=True):
        yield section(each, measured).text()
    if compare and len(targets) > 1:
        yield from difference(*(_text(each) for each in targets[:2]))


def _text(target: Target) -> str:
    with closing(Scraper(target)) as scraper:
        return scraper.scrape({})[1].decode()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.exporters", description=__doc__.partition("\n")[0])
    parser.add_argument("target", nargs="+", help="the URL of /metrics, or a process id")
    parser.add_argument("--scrapes", type=int, default=200, help="how often each exporter is scraped")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two turns")
    parser.add_argument("--compare", action="store_true", help="compare the expositions of the first two")
    arguments = parser.parse_args()
    try:
        for text in _run(arguments.target, max(arguments.scrapes, 2), arguments.pause, compare=arguments.compare):
            print(text, flush=True)
    except (TargetError, OSError) as error:
        print(f"bench.exporters: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
