"""Child processes of the demo: found, started, watched, and ended without a trace."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GOODBYE_SECONDS = 5.0
LOG_TAIL = 5


class DemoError(Exception):
    """Why the demo cannot run: one sentence for the terminal."""


def binary(*names: str) -> str:
    """The first of these commands on PATH or in the checkout's cache."""
    cache = Path(__file__).parents[1] / ".cache" / "tools" / "bin"
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=str(cache))
        if found:
            return found
    raise DemoError(
        f"{names[0]} is not on PATH: install it, or run 'make setup' in the checkout, which unpacks it into .cache"
    )


def check_ports(ports: Mapping[str, int]) -> None:
    """Raises DemoError with a sentence when one of the ports is taken."""
    for option, port in ports.items():
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                raise DemoError(f"port {port} is taken: choose another with {option}") from None


def free_port() -> int:
    """A port that nobody listens on now."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Whether a GET of this local address gives 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - our own loopback address
            return int(response.status) == 200  # noqa: PLR2004 - OK
    except OSError:
        return False


@dataclass(slots=True)
class Processes:
    """Children by name; their output goes to a file each, whose end explains a failure."""

    folder: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start one in a session of its own: Ctrl-C reaches only the demo, which ends the children in order."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - commands are the demo's own
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def wait_for(self, name: str, url: str, seconds: float = 30.0) -> None:
        """Until the address answers; raises DemoError when the process ends or the time is over."""
        end = time.monotonic() + seconds
        while not answers(url):
            if self._running[name].poll() is not None or time.monotonic() > end:
                raise DemoError(f"{name} did not start: {self._last_words(name)}")
            time.sleep(0.05)

    def ended(self) -> str | None:
        """A sentence about a child that ended by itself, or None."""
        for name, process in self._running.items():
            if process.poll() is not None:
                return f"{name} ended with {process.returncode}: {self._last_words(name)}"
        return None

    def pid(self, name: str) -> int:
        """Of a running child."""
        return self._running[name].pid

    def stop(self, *names: str) -> None:
        """End these children, or all of them: politely, then by force, each with everything it started."""
        chosen = [(name, self._running.pop(name)) for name in names or tuple(self._running)]
        for _, process in chosen:
            _signal(process, signal.SIGTERM)
        end = time.monotonic() + GOODBYE_SECONDS
        for _, process in chosen:
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()

    def _last_words(self, name: str) -> str:
        lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
        return " / ".join(lines[-LOG_TAIL:]) or "it said nothing"


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
