"""The node exporter as it runs: a real process with its reader child, asked over HTTP."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.scene import ROOT

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
    """Of one process, in MiB; `share` counts a page that n processes have in memory as one n-th."""

    resident: float
    share: float
    private: float

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.resident + other.resident, self.share + other.share, self.private + other.private)


def memory(pid: int) -> Memory:
    """What the kernel counts now (smaps_rollup of proc(5))."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kilobytes = {words[0]: int(words[1]) for words in lines}
    return Memory(*(kilobytes[name] / 1024 for name in ("Rss:", "Pss:", "Private_Dirty:")))
