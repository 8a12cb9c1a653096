"""Runs the node exporter as a real process, scrapes it over HTTP, and reads how much memory its processes have.

It has a child, the reader process, which alone loads the native GPU libraries.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO

from bench.fixture import ROOT

START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RunningExporter:
    """A node exporter that listens."""

    pid: int
    port: int
    began: float
    """When it was started, on the monotonic clock."""

    def exposition(self, *, gzip: bool = False) -> bytes:
        """Scrape once on a new connection. Empty when the exporter does not answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"} if gzip else {})
            return connection.getresponse().read()
        except OSError:
            return b""
        finally:
            connection.close()

    def wait_for(self, *words: bytes) -> float:
        """Seconds from the start of the process until an exposition has all of these words. Raises TimeoutError."""
        end = self.began + START_SECONDS
        while time.monotonic() < end:
            exposition = self.exposition()
            if all(word in exposition for word in words):
                return time.monotonic() - self.began
            time.sleep(0.01)
        raise TimeoutError(f"no exposition with {words!r} within {START_SECONDS:.0f} s")

    def reader(self) -> int:
        """The process id of the reader process."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        found = [pid for task in threads for pid in (task / children.name).read_text().split()]
        return int(found[0])


@contextmanager
def running(arguments: tuple[str, ...], environment: Mapping[str, str], bytecode: Path) -> Iterator[RunningExporter]:
    """Run a node exporter with these flags, with its bytecode compiled (into that folder) as it is in an image.

    It listens on a port that the kernel chooses, and logs which one it is.
    """
    compiled = {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONDONTWRITEBYTECODE": "", "NODE_NAME": "node-1"}
    command = (sys.executable, "-m", "exporter", "node", "--address", "127.0.0.1:0", *arguments)
    began = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment, **compiled}, stderr=log)
        try:
            yield RunningExporter(process.pid, _serving_port(process, log), began)
        finally:
            process.terminate()
            process.wait()


def _serving_port(process: subprocess.Popen[bytes], log: IO[bytes]) -> int:
    """Wait for the log message that names the port. Raises TimeoutError."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        text = os.pread(log.fileno(), 1 << 20, 0)
        if found := re.search(rb"serving on port (\d+)", text):
            return int(found[1])
        time.sleep(0.005)
    raise TimeoutError(f"the exporter does not serve: {os.pread(log.fileno(), 1 << 20, 0).decode()}")


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Memory of one process, in MiB. A file's pages are in memory once, however many processes have them mapped."""

    resident: float
    share: float
    """The proportional share: a page that n processes have counts as one n-th in each."""
    anonymous: float
    """Memory that belongs to this process alone."""
    files: Mapping[str, float]
    """Unchanged resident memory of each mapped file, by path."""

    def once(self, other: "ProcessMemory") -> float:
        """Memory of two processes together; a page that both have counts once."""
        paths = self.files.keys() | other.files.keys()
        files = sum(max(self.files.get(path, 0.0), other.files.get(path, 0.0)) for path in paths)
        return self.anonymous + other.anonymous + files


def memory(pid: int) -> ProcessMemory:
    """Read what the kernel counts now (smaps of proc(5))."""
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
    return ProcessMemory(totals["Rss:"] / 1024, totals["Pss:"] / 1024, totals["Anonymous:"] / 1024, mapped)
