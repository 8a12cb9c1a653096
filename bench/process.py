"""The node exporter as it runs: a real process with its reader child, asked over HTTP."""

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.fixture import ROOT

START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Running:
    """A node exporter that listens."""

    pid: int
    port: int
    began: float
    """When it was started, on the monotonic clock."""

    def page(self, *, gzip: bool = False) -> bytes:
        """One scrape on a connection of its own; empty while nobody listens yet."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"} if gzip else {})
            return connection.getresponse().read()
        except OSError:
            return b""
        finally:
            connection.close()

    def wait_for(self, *words: bytes) -> float:
        """Seconds from the start of the process until a page holds all of these words."""
        end = self.began + START_SECONDS
        while time.monotonic() < end:
            page = self.page()
            if all(word in page for word in words):
                return time.monotonic() - self.began
            time.sleep(0.01)
        raise TimeoutError(f"no page with {words!r} came within {START_SECONDS:.0f} s")

    def reader(self) -> int:
        """Process id of the reader child."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        found = [pid for task in threads for pid in (task / children.name).read_text().split()]
        return int(found[0])


@contextmanager
def running(arguments: tuple[str, ...], environment: Mapping[str, str], bytecode: Path) -> Iterator[Running]:
    """A node exporter with these flags, as an image has it: with its bytecode compiled (into that folder)."""
    port = free_port()
    compiled = {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONDONTWRITEBYTECODE": "", "NODE_NAME": "node-1"}
    command = (sys.executable, "-m", "exporter", "node", "--address", f"127.0.0.1:{port}", *arguments)
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment, **compiled}, stderr=subprocess.DEVNULL
    )
    try:
        yield Running(process.pid, port, began)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one process, in MiB. A file's pages are in memory once, however many processes have them mapped."""

    resident: float
    share: float
    """Where a page that n processes have counts as one n-th in each."""
    anonymous: float
    """Of this process alone."""
    files: Mapping[str, float]
    """By path, what is resident of it and unchanged."""

    def once(self, other: "Memory") -> float:
        """Of two processes together, a page that both have counted once."""
        paths = self.files.keys() | other.files.keys()
        files = sum(max(self.files.get(path, 0.0), other.files.get(path, 0.0)) for path in paths)
        return self.anonymous + other.anonymous + files


def memory(pid: int) -> Memory:
    """What the kernel counts now (smaps of proc(5))."""
    files: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    path = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            path = words[5] if len(words) > 5 else ""
        elif words[0] in {"Rss:", "Pss:", "Anonymous:"}:
            kilobytes = int(words[1])
            totals[words[0]] += kilobytes
            files[path] += {"Rss:": kilobytes, "Pss:": 0, "Anonymous:": -kilobytes}[words[0]]
    mapped = {path: kilobytes / 1024 for path, kilobytes in files.items()}
    return Memory(totals["Rss:"] / 1024, totals["Pss:"] / 1024, totals["Anonymous:"] / 1024, mapped)
