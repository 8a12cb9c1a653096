"""A program of ours as a process, as its container starts it."""

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Running:
    port: int
    process: subprocess.Popen

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 when there is no answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=LIMIT_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def until(self, path: str, *texts: str) -> str:
        """The body once the path answers with status 200 and all of these texts in it."""
        deadline = time.monotonic() + LIMIT_SECONDS
        status, body = 0, ""
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"exit code {self.process.returncode}"
            status, body = self.get(path)
            if status == 200 and all(text in body for text in texts):
                return body
            time.sleep(0.1)
        raise AssertionError(f"{path} gave {status} without {texts} for {LIMIT_SECONDS:g} s: {body[-2000:]}")

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.terminate()
        return self.process.wait(timeout=LIMIT_SECONDS)


@contextmanager
def running(arguments: list[str], environment: dict[str, str]) -> Iterator[Running]:
    """`gpugauge` with these arguments and no other environment than the given one.

    The arguments must have port 0, for which the kernel chooses a free port; the program logs which one it is.
    """
    needed = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE")}
    command = [sys.executable, "-m", "exporter", *arguments]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env={**needed, **environment}, stderr=log)
        try:
            yield Running(_serving_port(process, log), process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _serving_port(process: subprocess.Popen, log: IO[bytes]) -> int:
    """The port in the program's log, once it is there."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(rb"serving on port (\d+)", os.pread(log.fileno(), 1 << 20, 0)):
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(f"the program does not serve: {os.pread(log.fileno(), 1 << 20, 0).decode()}")
