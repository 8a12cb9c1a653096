"""A program as a process: when it is ready, and how it stops."""

import contextlib
import http.client
import math
import re
import subprocess
import sys

import pytest

from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.gpu_names import gpu_resources
from simulators.api_server import SimulatedApiServer
from simulators.api_server_http import ApiFault
from tests.waiting import until

pytestmark = pytest.mark.process

LIMIT_SECONDS = 120.0

PROGRAM = """
import os, signal, sys, threading
from exporter import log
from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.program import ProgramEndpoints, RunningServers, run_until_signaled
from exporter.snapshot import Snapshot
from exporter.web.server import HttpServer

log.setup(sys.stderr)
closed, used_closed = threading.Event(), threading.Event()

def collect():
    os.kill(os.getpid(), signal.SIGTERM)
    if sys.argv[1] == "slow":
        closed.wait()
    if closed.is_set():
        used_closed.set()
        raise ValueError("the source is closed")
    return Snapshot(0.0, ())

def close():
    closed.set()
    used_closed.wait(0.5)

loop = CollectionLoop(collect, ExporterMetrics({}), 0.01)
only = HttpServer("127.0.0.1:0", ProgramEndpoints(loop, lambda: None))
only.start()
server = RunningServers([only])
print(run_until_signaled(loop, server, close), used_closed.is_set())
"""
"""A program whose collections fail once the source is closed. It is sent SIGTERM by its first collection."""


@pytest.mark.parametrize(("kind", "result"), [("quick", "True False"), ("slow", "True True")])
def test_sources_are_closed_after_the_last_collection_or_its_failure_is_not_logged(kind, result):
    command = [sys.executable, "-c", PROGRAM, kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True)
    assert done.stdout.strip() == result
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert "serving on port" in lines[0]
    assert "msg=stopping" in lines[1]


SIGNALED = """
import os, random, signal, time
from exporter.program import run_until_signaled

class Nothing:
    failure = None
    def __getattr__(self, name):
        return lambda *_: None
    def ports(self):
        return "port 1"
    def alive(self):
        return True

class SignaledByAnother(Nothing):
    def start(self):
        parent = os.getpid()
        if not os.fork():  # a thread of this process would let it wait at few places alone
            time.sleep(random.uniform(0, 0.002))
            os.kill(parent, signal.SIGTERM)
            os._exit(0)

for _ in range(300):
    assert run_until_signaled(SignaledByAnother(), Nothing(), lambda: None, check_seconds=1e-6)
    os.wait()
print("ended each time")
"""
"""Looks for the end of the server all the time, so that a signal nearly always comes while it is not just waiting."""


def test_a_signal_ends_a_program_whatever_it_is_just_doing():
    command = [sys.executable, "-c", SIGNALED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True)
    assert done.stdout.strip() == "ended each time"


@contextlib.contextmanager
def running_api_server():
    server = SimulatedApiServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def watches(server):
    return sum(request.watch for request in server.requests)


def is_settled(server, log):
    """Whether every kind is watched or has said why it is not."""
    optional = {kind.name for kind in object_kinds(gpu_resources(())) if kind.optional}
    off = set(re.findall(r"(\w+) are optional and not read", log))
    return watches(server) >= 3 and off == optional


def test_a_watcher_that_is_terminated_while_it_watches_writes_no_further_message(tmp_path):
    log = tmp_path / "log"
    with running_api_server() as server, log.open("wb") as stderr:
        command = [sys.executable, "-m", "exporter", "cluster", "--api-server", server.url]
        process = subprocess.Popen([*command, "--address", "127.0.0.1:0"], stderr=stderr)
        until(lambda: is_settled(server, log.read_text()) or process.poll() is not None, LIMIT_SECONDS, 0.05)
        process.terminate()
        assert process.wait(LIMIT_SECONDS) == 0, log.read_text()
    assert log.read_text().partition("msg=stopping")[2].splitlines()[1:] == [], log.read_text()


@contextlib.contextmanager
def running_watcher(server, log):
    """A watcher as a process; yields a function that requests a path and returns status and body."""
    command = [sys.executable, "-m", "exporter", "cluster", "--api-server", server.url, "--address", "127.0.0.1:0"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr)

    def get(path):
        connection = http.client.HTTPConnection("127.0.0.1", int(port()), timeout=LIMIT_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def port():
        found = re.search(r"serving on port (\d+)", log.read_text())
        return found[1] if found else ""

    try:
        until(port, LIMIT_SECONDS)
        yield get
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)


@pytest.mark.parametrize("kind", ["pods", "nodes", "namespaces"])
def test_a_watcher_is_ready_only_after_its_first_list_of_every_kind(tmp_path, kind):
    with running_api_server() as server:
        server.add_fault(ApiFault("list", kind, delay=math.inf))
        with running_watcher(server, tmp_path / "log") as get:
            until(lambda: get("/readyz") == (503, f"the {kind} are not listed yet\n"), LIMIT_SECONDS)
            assert get("/health") == (200, "OK")
            assert get("/livez")[0] == 200
            server.clear_faults()
            until(lambda: get("/readyz") == (200, "ok\n"), LIMIT_SECONDS)
