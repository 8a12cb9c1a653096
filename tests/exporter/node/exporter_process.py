"""A whole node exporter as a process, what it depends on, and a scraper that checks every exposition."""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from demo.cluster import allocations
from exporter.node.simulation.document import ScenarioEvent
from exporter.node.simulation.scenario import Scenario, load
from simulators.kubelet import SimulatedKubelet
from tests.fakes.build import build
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.waiting import until

INTERVAL_MS = 400
LIMIT_SECONDS = 60.0
"""How long to wait for what must happen, on a busy machine too."""
RESPONSE_SECONDS = 4.0
"""Limit of every response; below the deadlines of kubelet (5 s) and reader (10 s), so that none is waited for."""
DEVICE_SOURCES = ("dcgm", "nvml")
PROBE_SECONDS = 0.03
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
PORT = re.compile(r"serving on port (\d+)")


@dataclass(frozen=True)
class Scrape:
    """An exposition, parsed in the simplest way: label values here have no escapes."""

    text: str

    def series(self, metric: str) -> list[tuple[dict[str, str], float]]:
        found = (SAMPLE.match(line) for line in self.text.splitlines() if line.startswith(metric))
        return [(dict(LABEL.findall(m[2] or "")), float(m[3])) for m in found if m and m[1] == metric]

    def up(self, source: str) -> bool | None:
        """Whether the source is up; None when the exposition has no such series."""
        up = [value for labels, value in self.series("gpugauge_source_up") if labels["source"] == source]
        return bool(up[0]) if up else None

    def reasons(self, source: str) -> set[str]:
        return {labels["reason"] for labels, _ in self.series("gpugauge_source_problem") if labels["source"] == source}

    def dcgm(self) -> set[str]:
        """Every DCGM-named series, without its value."""
        return {line.rpartition(" ")[0] for line in self.text.splitlines() if line.startswith("DCGM_")}

    def measured(self) -> set[str]:
        """The same but for the vGPU license, which no scenario has and NVML always gives."""
        return {series for series in self.dcgm() if not series.startswith("DCGM_FI_DEV_VGPU_LICENSE_STATUS")}

    def value(self, metric: str) -> float | None:
        found = self.series(metric)
        return found[0][1] if found else None


NOTHING = Scrape("")


@dataclass
class Scraper:
    """Requests /metrics and /livez without a pause and records what must never happen."""

    port: int
    source: str
    recent: deque[tuple[int, Scrape]] = field(default_factory=lambda: deque([(0, NOTHING)], maxlen=200))
    """The last scrapes and their numbers: so that a test also finds a state shorter than one of its polls."""
    slowest: float = 0.0
    count: int = 0
    faults: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def latest(self) -> Scrape:
        return self.recent[-1][1]

    def after(self, number: int) -> list[tuple[int, Scrape]]:
        """The scrapes with a higher number."""
        return [(n, scrape) for n, scrape in self.recent.copy() if n > number]

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def run(self) -> None:
        while not self._stop.wait(PROBE_SECONDS):
            self._probe("/metrics")
            self._probe("/livez")

    def _probe(self, path: str) -> None:
        began = time.monotonic()
        try:
            status, text = self.get(path)
        except OSError as error:
            status, text = 0, repr(error)
        took = time.monotonic() - began
        if self._stop.is_set():  # the process may be ending
            return
        self.slowest = max(self.slowest, took)
        self.count += 1
        if status != 200 or took > RESPONSE_SECONDS:
            self.faults.append(f"{path}: {status} after {took:.2f} s: {text[:200]}")
        elif path == "/metrics":
            self._check(Scrape(text))

    def _check(self, scrape: Scrape) -> None:
        if not any(map(scrape.up, DEVICE_SOURCES)) and scrape.dcgm():
            self.faults.append(f"series of a source that is down: {sorted(scrape.dcgm())[:2]}")
        if scrape.value("gpugauge_collection_failures_total"):
            self.faults.append("a collection failed")
        self.recent.append((self.recent[-1][0] + 1, scrape))

    def stop(self) -> None:
        self._stop.set()


@dataclass
class RunningExporter:
    """The process, and what it depends on: libraries in a folder, a scenario in a table, a kubelet."""

    folder: Path
    table: ScenarioTable
    kubelet: SimulatedKubelet
    process: subprocess.Popen
    scraper: Scraper
    document: msgspec.Struct
    has_activity: bool = True
    """Whether the counters file has fields of engine activity, as the default one has."""
    measured: dict[str, float] = field(default_factory=dict)
    """How long each awaited state took, in seconds."""

    @property
    def libraries(self) -> Path:
        return self.folder / "lib"

    def scenario_time(self) -> float:
        """Seconds since the scenario began."""
        return time.time() - self.table._begin

    def set_events(self, *events: ScenarioEvent) -> None:
        """From now on the scenario has these events and no others. Returns when the libraries see them."""
        self.set_document(msgspec.structs.replace(self.document, events=events))

    def set_document(self, document: msgspec.Struct) -> None:
        """From now on the scenario is this one. Returns when the libraries see it."""
        self.table.scenario = Scenario("test", document)
        begun = self.table.ticks + 1  # a moment that is being written may be of the scenario before
        until(lambda: self.table.ticks > begun)

    def wait_for(self, good: Callable[[Scrape], bool], what: str, before: Scrape = NOTHING) -> Scrape:
        """The first scrape from now on, or the latest one, that satisfies `good`; how long it took is kept as `what`.

        When there is none within the limit, the error lists series that came or went since `before`.
        """
        began = time.monotonic()
        seen = self.scraper.recent[-1][0] - 1
        while time.monotonic() - began < LIMIT_SECONDS:
            for number, scrape in self.scraper.after(seen):
                seen = number
                if good(scrape):
                    self.measured[what] = time.monotonic() - began
                    return scrape
            assert self.process.poll() is None, f"the process ended with {self.process.returncode}"
            time.sleep(0.01)
        latest = self.scraper.latest
        changed = "\n".join(sorted(before.dcgm() ^ latest.dcgm())[:5])
        raise AssertionError(f"not within {LIMIT_SECONDS:g} s: {what}\n{changed}\n{latest.text[-2500:]}")

    def wait_until_up(self) -> Scrape:
        """The first scrape with source and kubelet up and with samples of devices, engine activity among them.

        libdcgm has activity one interval after the first read.
        """
        source = self.scraper.source
        activity = "DCGM_FI_PROF" if source == "dcgm" and self.has_activity else "DCGM_FI"
        return self.wait_for(
            lambda s: bool(s.up(source) and s.up("kubelet") and any(line.startswith(activity) for line in s.dcgm())),
            "up",
        )

    def reader_pid(self) -> int | None:
        """The process id of the reader process."""
        return next(iter(children(self.process.pid)), None)


def children(pid: int) -> list[int]:
    """The process ids of a process's children."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and is not reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_ended(pids: list[int]) -> None:
    end = time.monotonic() + LIMIT_SECONDS
    while any(map(alive, pids)):
        assert time.monotonic() < end, f"still running: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.02)


def engine_address(folder: Path) -> str:
    """The address of the host engine, for the option `-r`."""
    return EngineSocket(folder / "engine.sock").address


def command(folder: Path, source: str, *more: str, embedded: bool = False) -> list[str]:
    remote = ("-r", engine_address(folder)) if source == "dcgm" and not embedded else ()
    flags = ("--kubernetes", "--pod-resources-kubelet-socket", str(folder / "kubelet.sock"))
    serving = ("--address", "127.0.0.1:0", "--collect-interval", str(INTERVAL_MS))
    return [sys.executable, "-m", "exporter", "node", "--source", source, *remote, *flags, *serving, *more]


def environment(folder: Path) -> dict[str, str]:
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    return needed | {
        "NODE_NAME": "node-1",
        VARIABLE: str(folder / "table"),
        "LD_LIBRARY_PATH": str(folder / "lib"),
    }


@contextmanager
def running_exporter(
    folder: Path,
    source: str = "dcgm",
    *more: str,
    scenario: str = "mig",
    ready: bool = True,
    embedded: bool = False,
    prefix: tuple[str, ...] = (),
    has_activity: bool = True,
    apart: bool = False,
) -> Iterator[RunningExporter]:
    """A node exporter that is being scraped; without `ready`, libraries and kubelet are not there yet.

    Its output is in the file `log`; with `apart`, standard output is in the file `stdout`.
    """
    (folder / "lib").mkdir()
    loaded = load(scenario)
    table = ScenarioTable(loaded, folder / "table", listening=EngineSocket(folder / "engine.sock"))
    kubelet = SimulatedKubelet(folder / "kubelet.sock", lambda: allocations(loaded, 0.0))
    with ExitStack() as stack:
        stack.enter_context(table.run(0.1))
        if ready:
            build(folder / "lib", only="libdcgm.so.4" if source == "dcgm" else "libnvidia")
            kubelet.start()
        stack.callback(kubelet.stop)
        log = stack.enter_context((folder / "log").open("wb"))
        arguments = [*prefix, *command(folder, source, *more, embedded=embedded)]
        output = stack.enter_context((folder / "stdout").open("wb")) if apart else log
        process = subprocess.Popen(arguments, env=environment(folder), stderr=log, stdout=output)
        stack.callback(_end, process)
        scraper = Scraper(_port(folder / "log", process), source)
        thread = threading.Thread(target=scraper.run, name="scraper")
        thread.start()
        stack.callback(thread.join)
        stack.callback(scraper.stop)
        exporter = RunningExporter(folder, table, kubelet, process, scraper, loaded.document, has_activity)
        if ready:
            exporter.wait_until_up()
        yield exporter


def _port(log: Path, process: subprocess.Popen) -> int:
    """The port that the process logs once it listens: it chooses a free one."""
    end = time.monotonic() + LIMIT_SECONDS
    while not (found := PORT.search(log.read_text())):
        assert process.poll() is None, f"the process ended with {process.returncode}: {log.read_text()}"
        assert time.monotonic() < end, f"nothing listens: {log.read_text()}"
        time.sleep(0.02)
    return int(found[1])


def _end(process: subprocess.Popen) -> None:
    readers = children(process.pid)
    if process.poll() is None:
        process.kill()
        process.wait()
    wait_until_ended(readers)  # a reader process ends by itself when its parent process is gone
