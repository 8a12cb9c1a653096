"""A whole node exporter as a process, the world around it, and a scraper that never looks away."""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from demo.cluster import holders
from exporter.node.simulation.document import Event
from exporter.node.simulation.scenario import Scenario, load
from simulators.kubelet import SimulatedKubelet
from tests.deploy.running import free_port
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, Player

INTERVAL_MS = 400
TRUTH_SECONDS = 2.5
"""Interval and deadline of a read (four fifths of an interval), and a share for a busy machine."""
RECOVERY_SECONDS = 30.0
PAGE_SECONDS = 1.0
PROBE_SECONDS = 0.03
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Scrape:
    """A page, read as plainly as can be: labels here hold no escapes."""

    text: str

    def series(self, metric: str) -> list[tuple[dict[str, str], float]]:
        found = (SAMPLE.match(line) for line in self.text.splitlines() if line.startswith(metric))
        return [(dict(LABEL.findall(m[2] or "")), float(m[3])) for m in found if m and m[1] == metric]

    def up(self, source: str) -> bool | None:
        """Whether the source is up; None when the page does not tell."""
        told = [value for labels, value in self.series("gpugauge_source_up") if labels["source"] == source]
        return bool(told[0]) if told else None

    def reasons(self, source: str) -> set[str]:
        return {labels["reason"] for labels, _ in self.series("gpugauge_source_problem") if labels["source"] == source}

    def dcgm(self) -> set[str]:
        """Every DCGM-named series, without its value."""
        return {line.rpartition(" ")[0] for line in self.text.splitlines() if line.startswith("DCGM_")}

    def value(self, metric: str) -> float | None:
        found = self.series(metric)
        return found[0][1] if found else None


NOTHING = Scrape("")


@dataclass
class Scraper:
    """Asks for /metrics and /livez all the time and remembers what must never happen."""

    port: int
    source: str
    latest: Scrape = NOTHING
    slowest: float = 0.0
    count: int = 0
    faults: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
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
        if status != 200 or took > PAGE_SECONDS:
            self.faults.append(f"{path}: {status} after {took:.2f} s: {text[:200]}")
        elif path == "/metrics":
            self._judge(Scrape(text))

    def _judge(self, page: Scrape) -> None:
        if page.up(self.source) is not True and page.dcgm():
            self.faults.append(f"old series on a page of a source that is down: {sorted(page.dcgm())[:2]}")
        if page.value("gpugauge_failed_passes_total"):
            self.faults.append("a pass failed")
        self.latest = page

    def stop(self) -> None:
        self._stop.set()


@dataclass
class World:
    """The process, and what it depends on: libraries in a folder, a played scenario, a kubelet."""

    folder: Path
    port: int
    player: Player
    kubelet: SimulatedKubelet
    process: subprocess.Popen
    scraper: Scraper
    document: msgspec.Struct
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def libraries(self) -> Path:
        return self.folder / "lib"

    def t(self) -> float:
        """Scenario time, in seconds."""
        return time.time() - self.player._begin

    def play(self, *events: Event) -> None:
        """From now on the scenario has these events and no others."""
        self.player.scenario = Scenario("played", msgspec.structs.replace(self.document, events=events))

    def until(self, good: Callable[[Scrape], bool], seconds: float, what: str, before: Scrape = NOTHING) -> Scrape:
        """The first scrape for which it holds; how long that took is kept under `what`.

        Series that came or went since `before` are named when it does not come to that.
        """
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            page = self.scraper.latest
            if good(page):
                self.measured[what] = time.monotonic() - began
                return page
            assert self.process.poll() is None, f"the process ended with {self.process.returncode}"
            time.sleep(0.01)
        latest = self.scraper.latest
        changed = "\n".join(sorted(before.dcgm() ^ latest.dcgm())[:5])
        raise AssertionError(f"not within {seconds:g} s: {what}\n{changed}\n{latest.text[-2500:]}")

    def whole(self) -> Scrape:
        """The page once source and kubelet are up."""
        source = self.scraper.source
        return self.until(lambda p: bool(p.up(source) and p.up("kubelet") and p.dcgm()), RECOVERY_SECONDS, "recovered")

    def reader(self) -> int | None:
        """Process id of the reader child."""
        return next(iter(children(self.process.pid)), None)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


def alive(pid: int) -> bool:
    """Whether it runs; what only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def command(folder: Path, port: int, source: str, *more: str, embedded: bool = False) -> list[str]:
    remote = ("-r", "localhost:5555") if source == "dcgm" and not embedded else ()
    flags = ("--kubernetes", "--pod-resources-kubelet-socket", str(folder / "kubelet.sock"))
    serving = ("--address", f"127.0.0.1:{port}", "--collect-interval", str(INTERVAL_MS))
    return [sys.executable, "-m", "exporter", "node", "--source", source, *remote, *flags, *serving, *more]


def environment(folder: Path) -> dict[str, str]:
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    return needed | {
        "NODE_NAME": "node-1",
        VARIABLE: str(folder / "table"),
        "LD_LIBRARY_PATH": str(folder / "lib"),
    }


@contextmanager
def world(
    folder: Path,
    source: str = "dcgm",
    *more: str,
    scenario: str = "mig",
    there: bool = True,
    embedded: bool = False,
    prefix: tuple[str, ...] = (),
) -> Iterator[World]:
    """A node exporter that is being scraped; without `there` it starts before libraries and kubelet are."""
    (folder / "lib").mkdir()
    document = load(scenario)
    player = Player(document, folder / "table")
    kubelet = SimulatedKubelet(folder / "kubelet.sock", lambda: holders(document, 0.0))
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(player.run(0.1))
        if there:
            build(folder / "lib", only="libdcgm.so.4" if source == "dcgm" else "libnvidia")
            kubelet.start()
        stack.callback(kubelet.stop)
        log = stack.enter_context((folder / "log").open("wb"))
        arguments = [*prefix, *command(folder, port, source, *more, embedded=embedded)]
        process = subprocess.Popen(arguments, env=environment(folder), stderr=log, stdout=log)
        stack.callback(_end, process)
        scraper = Scraper(port, source)
        _wait_for_port(scraper, process)
        thread = threading.Thread(target=scraper.run, name="scraper")
        thread.start()
        stack.callback(thread.join)
        stack.callback(scraper.stop)
        made = World(folder, port, player, kubelet, process, scraper, document.document)
        if there:
            made.whole()
        yield made


def _wait_for_port(scraper: Scraper, process: subprocess.Popen) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        assert process.poll() is None, f"the process ended with {process.returncode}"
        try:
            scraper.get("/livez")
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("nothing listens")


def _end(process: subprocess.Popen) -> None:
    left = children(process.pid)
    if process.poll() is None:
        process.kill()
        process.wait()
    for pid in left:  # a reader ends by itself when its parent is gone
        end = time.monotonic() + 10
        while alive(pid) and time.monotonic() < end:
            time.sleep(0.02)
