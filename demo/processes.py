"""Finds the programs that the demo runs as child processes, starts them, waits until they answer, and ends them."""

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

from demo.parent import ends_with_this_process

TERMINATE_SECONDS = 5.0
"""How long a process may take to end after SIGTERM before it gets SIGKILL."""
LOG_TAIL = 5
IN_USE = "already in use"
"""Part of the message of every program that cannot listen on its port: gpugauge's, and Go's `bind: address …`."""


class DemoError(Exception):
    """The demo cannot run. The text is one message for the terminal."""


class PortInUseError(DemoError):
    """Another process listens on a port; with other ports the demo can run."""


def binary(*names: str) -> str:
    """Find the first of these commands, on PATH or in the checkout's cache. Raises DemoError."""
    cache = Path(__file__).parents[1] / ".cache" / "tools" / "bin"
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=str(cache))
        if found:
            return found
    raise DemoError(
        f"{names[0]} is not on PATH: install it, or run 'make setup' in the checkout, which unpacks it into .cache"
    )


def check_ports(ports: Mapping[str, int]) -> None:
    """Raise PortInUseError, which names port and option, when one of the ports (by option) is in use."""
    for option, port in ports.items():
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                raise PortInUseError(f"port {port} is {IN_USE}: choose another with {option}") from None


def free_port() -> int:
    """Return a port that is free now. It may be in use a moment later: callers try again on PortInUseError."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Whether a GET of this local address gets status 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - our own loopback address
            return int(response.status) == 200  # noqa: PLR2004 - OK
    except OSError:
        return False


@dataclass(slots=True)
class Processes:
    """Running child processes by name. The output of each goes to a file of its own, whose end explains a failure."""

    folder: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a process in a session of its own: Ctrl-C reaches only the demo, which ends its processes in order.

        A demo that was killed cannot: the process ends with it, or with the thread that called this.
        """
        with self._log_file(name).open("wb") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - commands are the demo's own
                ends_with_this_process(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def wait_for(self, name: str, url: str, seconds: float = 60.0) -> None:
        """Wait until the address answers. Raises DemoError when the process ends first or the time is over.

        The error is a PortInUseError when the process ended because another one listens on its port.
        """
        end = time.monotonic() + seconds
        while self._running[name].poll() is None:
            # The process is looked at again: another one with its port may have answered while it failed to start.
            if answers(url) and self._running[name].poll() is None:
                return
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        output = self._end_of_log(name)
        raise (PortInUseError if IN_USE in output else DemoError)(f"{name} did not start: {output}")

    def ended(self) -> str | None:
        """A message about a process that ended by itself, or None."""
        for name, process in self._running.items():
            if process.poll() is not None:
                return f"{name} ended with {process.returncode}: {self._end_of_log(name)}"
        return None

    def stop(self, *names: str) -> None:
        """End these processes, or all of them, each with everything that it started: SIGTERM, later SIGKILL."""
        chosen = [(name, self._running.pop(name)) for name in names or tuple(self._running)]
        for _, process in chosen:
            _signal_group(process, signal.SIGTERM)
        end = time.monotonic() + TERMINATE_SECONDS
        for _, process in chosen:
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                _signal_group(process, signal.SIGKILL)
                process.wait()

    def _log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _end_of_log(self, name: str) -> str:
        lines = self._log_file(name).read_text(errors="replace").splitlines()
        return " / ".join(lines[-LOG_TAIL:]) or "it wrote no output"


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
