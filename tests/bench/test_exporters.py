"""Measuring an exporter that runs, whatever it is: found by URL or process id, with all of its processes."""

import gzip
import os
import socket
import subprocess
import sys

import pytest

from bench import exporters
from bench.exporters import Target, TargetError, measure, section, target
from tests.fakes.endpoints import FixedEndpoints, exposition_of, serving

CHILD = "import sys; sys.stdin.read()"
SERVES = f"""
import subprocess, sys
from tests.fakes.endpoints import serving
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
with serving() as server:
    print(server.port, child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def exporter():
    """An exporter with a child process: its port, and both process ids."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SERVES], stdin=pipe, stdout=pipe, text=True) as process:
        port, child = map(int, process.stdout.readline().split())
        yield port, process.pid, child
        process.stdin.close()


@pytest.mark.process
def test_it_is_found_by_its_url_and_by_its_process_id(exporter):
    port, pid, child = exporter
    found = Target(f"http://127.0.0.1:{port}/metrics", pid)
    assert target(found.url) == found
    assert target(str(pid)) == found
    assert found.processes() == [pid, child]


@pytest.mark.process
def test_scrapes_cpu_and_the_memory_of_all_processes_are_measured(exporter):
    port, _, _ = exporter
    found = target(f"http://localhost:{port}/metrics")
    (measured,) = measure([found], scrapes=5, pause=0.01)
    assert len(measured.taken) == 5
    assert min(measured.taken) > 0
    assert measured.size == len(gzip.compress(b"a 1\n", mtime=0))
    assert measured.share > 5
    text = section(found, measured).text()
    assert text.splitlines()[1] == f"http://localhost:{port}/metrics: 2 processes"
    assert [line.split("  ")[0] for line in text.splitlines()[3:9]] == [
        "scrape time, median",
        "scrape time, p95",
        "scrape time, p99",
        "CPU of one scrape",
        "CPU of one second without scrapes",
        "memory, proportional share of all processes",
    ]


def test_what_cannot_be_measured_is_one_message():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(TargetError, match=f"^http://127.0.0.1:{port}/metrics: not an http:// URL, or no process"):
        target(f"http://127.0.0.1:{port}/metrics")
    with pytest.raises(TargetError, match=r"^4194305: there is no such process, or it does not listen$"):
        target("4194305")


def test_an_answer_without_an_exposition_is_an_error():
    with serving() as server, pytest.raises(TargetError, match=r"^/nothing: status 404, 10 bytes$"):
        measure([Target(f"http://127.0.0.1:{server.port}/nothing", os.getpid())], 1, 0)


def test_the_first_two_are_compared_on_request(capsys, monkeypatch):
    text = b'# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{gpu="0"} %d\n'
    with (
        serving(FixedEndpoints(exposition_of(text % 40))) as one,
        serving(FixedEndpoints(exposition_of(text % 41))) as two,
    ):
        urls = [f"http://127.0.0.1:{server.port}/metrics" for server in (one, two)]
        monkeypatch.setattr(sys, "argv", ["exporters", *urls, "--scrapes", "2", "--pause", "0", "--compare"])
        assert exporters.main() == 0
    assert "value differs: DCGM_FI_DEV_GPU_TEMP{gpu='0'}: 40 and 41" in capsys.readouterr().out
