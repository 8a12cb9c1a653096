"""A program of ours as a process, as its container would start it."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class Running:
    port: int
    process: subprocess.Popen

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def until(self, path: str, *texts: str, seconds: float = 30) -> str:
        """The body once the path answers 200 with all of these texts in it."""
        deadline = time.monotonic() + seconds
        status, body = 0, ""
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"exit code {self.process.returncode}"
            status, body = self.get(path)
            if status == 200 and all(text in body for text in texts):
                return body
            time.sleep(0.1)
        raise AssertionError(f"{path} gave {status} without {texts} for {seconds:g} s: {body[-2000:]}")

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.terminate()
        return self.process.wait(timeout=15)


@contextmanager
def running(arguments: list[str], environment: dict[str, str], port: int) -> Iterator[Running]:
    """`gpugauge` with these arguments and no other environment than the given one."""
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    command = [sys.executable, "-m", "exporter", *arguments]
    process = subprocess.Popen(command, env={**needed, **environment})
    try:
        yield Running(port, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
