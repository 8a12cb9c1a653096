"""Measures how long a scrape takes and what CPU it costs the server, by kind of connection and number of scrapers."""

import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles

from bench.cpu import process_ms
from bench.fixture import BenchNode, RunningFakes, last_series
from bench.process import RunningExporter, running
from bench.resident import flags
from bench.table import BenchSection, Figure

PAUSE = 0.01
"""Average seconds between two scrapes of all scrapers together: one scrapes as often as ten do."""
SCRAPERS = 10
REPETITIONS = 6


@dataclass(frozen=True, slots=True)
class ScrapeKind:
    """How it is scraped: whether the connection is kept and the exposition compressed, and by how many at once."""

    kept: bool
    compressed: bool
    scrapers: int

    def __str__(self) -> str:
        connection, form = "kept" if self.kept else "new", "gzip" if self.compressed else "plain"
        return f"{connection}, {form}, {self.scrapers} scraper{'s'[: self.scrapers > 1]}"


def scrape_section(node: BenchNode, fakes: RunningFakes, budget: float, scrapes: int) -> BenchSection:
    """Measure latency for new and kept connections, plain and compressed, one scraper and ten.

    `budget` is in milliseconds.
    """
    with running(flags(fakes, fakes.counters_file, 5_000), fakes.environment(), fakes.bytecode) as process:
        process.wait_for(last_series(node.counters_file()), b"gpugauge_device_allocated_pods{")
        time.sleep(2)  # the first collections are a second apart
        rows = [
            _row(process, ScrapeKind(kept, compressed, scrapers), budget, scrapes)
            for kept in (False, True)
            for compressed in (False, True)
            for scrapers in (1, SCRAPERS)
        ]
        size = len(process.exposition())
    remarks = (
        f"Exposition of {size:,} bytes. p99 of the repetition that was disturbed least, of {REPETITIONS}.",
        "The CPU of a scrape is that of all threads of the server.",
        "Prometheus keeps its connection and accepts gzip: only those rows have a budget.",
    )
    return BenchSection(f"Scrapes: {node.name}", rows, remarks)


def _row(process: RunningExporter, kind: ScrapeKind, budget: float, scrapes: int) -> Figure:
    ask = scraper(process.port, PAUSE * kind.scrapers, kept=kind.kept, compressed=kind.compressed)
    before = process_ms(process.pid)
    taken = [_scraped(ask, kind.scrapers, max(scrapes // kind.scrapers, 2)) for _ in range(REPETITIONS)]
    each = (process_ms(process.pid) - before) / sum(map(len, taken))
    cuts = min((quantiles(some, n=100) for some in taken), key=lambda each: each[98])
    allowed = budget if kind.kept and kind.compressed else None
    return Figure(f"{kind}: p99", cuts[98], "ms", allowed, f"p50 {cuts[49]:.2f} ms, CPU {each:.3f} ms")


def _scraped(ask: Callable[[threading.Barrier, int, list[float]], None], scrapers: int, times: int) -> list[float]:
    """Run the scrapers once, each in a thread. Returns the milliseconds of all scrapes."""
    taken: list[float] = []
    barrier = threading.Barrier(scrapers)
    threads = [threading.Thread(target=ask, args=(barrier, times, taken)) for _ in range(scrapers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def scraper(
    port: int, pause: float, *, kept: bool, compressed: bool
) -> Callable[[threading.Barrier, int, list[float]], None]:
    """Make a client that appends the milliseconds of each of its scrapes to a list."""
    accept = b"Accept-Encoding: gzip\r\n" if compressed else b""
    request = b"GET /metrics HTTP/1.1\r\nHost: node-1\r\n%b\r\n" % accept

    def ask(barrier: threading.Barrier, times: int, taken: list[float]) -> None:
        connection = _connect(port)
        barrier.wait()
        for _ in range(times):
            time.sleep(pause * random.uniform(0.1, 1.9))  # noqa: S311 - scrapers are not synchronized
            began = time.perf_counter()
            if not kept:
                connection.close()
                connection = _connect(port)
            connection.sendall(request)
            _read(connection)
            taken.append((time.perf_counter() - began) * 1000)
        connection.close()

    return ask


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _read(connection: socket.socket) -> None:
    """Read one whole response."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        data += _some(connection)
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    missing = length - len(body)
    while missing > 0:
        missing -= len(_some(connection))


def _some(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 20)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data
