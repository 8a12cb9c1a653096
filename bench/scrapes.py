"""How long a scrape takes over HTTP, and what it costs the server, whoever asks and how many."""

import random
import socket
import threading
import time
from collections.abc import Callable
from statistics import quantiles

from bench.cpu import process_ms
from bench.fixture import Place, Scene
from bench.process import Running, running
from bench.resident import flags
from bench.table import Row, Section

PAUSE = 0.01
"""Seconds between two scrapes, on average, of all scrapers together: as many a second from one as from ten."""
CROWD = 10
ROUNDS = 6


def scrape_section(scene: Scene, place: Place, budget: float, scrapes: int) -> Section:
    """Percentiles of latency for fresh and kept connections, plain and compressed, one scraper and ten."""
    with running(flags(place, place.counters_file, 10_000), place.environment(), place.bytecode) as process:
        process.wait_for(b"\nDCGM_FI_", b"gpugauge_device_holders{")
        time.sleep(2)  # the first passes come in quick succession
        rows = [
            row
            for kept in (False, True)
            for compressed in (False, True)
            for crowd in (1, CROWD)
            for row in _rows(process, kept, compressed, crowd, (budget, scrapes))
        ]
        size = len(process.page())
    remarks = (
        f"Page {size:,} bytes. p99 of the least disturbed of {ROUNDS} rounds: the others measure what else runs here.",
        "The CPU of a scrape is the server's, all of its threads.",
        "Prometheus keeps its connection and takes gzip: those rows are judged, the others only told.",
    )
    return Section(f"Scrapes: {scene.name}", rows, remarks)


def _rows(process: Running, kept: bool, compressed: bool, crowd: int, limits: tuple[float, int]) -> list[Row]:  # noqa: FBT001
    budget, scrapes = limits
    ask = scraper(process.port, PAUSE * crowd, kept=kept, compressed=compressed)
    before = process_ms(process.pid)
    taken = [_round(ask, crowd, max(scrapes // crowd, 2)) for _ in range(ROUNDS)]
    each = (process_ms(process.pid) - before) / sum(map(len, taken))
    cuts = min((quantiles(some, n=100) for some in taken), key=lambda each: each[98])
    what = f"{'kept' if kept else 'fresh'}, {'gzip' if compressed else 'plain'}, {crowd} scraper{'s'[: crowd > 1]}"
    judged = budget if kept and compressed else None
    return [Row(f"{what}: p99", cuts[98], "ms", judged, f"p50 {cuts[49]:.2f} ms, CPU {each:.3f} ms")]


def _round(ask: Callable[[threading.Barrier, int, list[float]], None], crowd: int, times: int) -> list[float]:
    taken: list[float] = []
    barrier = threading.Barrier(crowd)
    threads = [threading.Thread(target=ask, args=(barrier, times, taken)) for _ in range(crowd)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def scraper(
    port: int, pause: float, *, kept: bool, compressed: bool
) -> Callable[[threading.Barrier, int, list[float]], None]:
    """One client: its milliseconds for each scrape go into the list."""
    accept = b"Accept-Encoding: gzip\r\n" if compressed else b""
    request = b"GET /metrics HTTP/1.1\r\nHost: node-1\r\n%b\r\n" % accept

    def ask(barrier: threading.Barrier, times: int, taken: list[float]) -> None:
        connection = _connect(port)
        barrier.wait()
        for _ in range(times):
            time.sleep(pause * random.uniform(0.1, 1.9))  # noqa: S311 - scrapers keep no step
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
    """One answer, whole."""
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
