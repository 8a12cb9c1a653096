"""Faults of the program itself: a collection that hangs or fails, and whatever ends the process."""

import subprocess
import sys
import threading

import pytest

from exporter import cli
from exporter.collection_loop import LATE_MIN_SECONDS, STALLED_GRACE_SECONDS, STALLED_INTERVALS
from exporter.config import DEFAULT_INTERVAL_SECONDS
from exporter.node.config import node_config
from exporter.node.program import NodeProgram
from exporter.node.restart_need import PATIENCE_SECONDS
from exporter.snapshot import Snapshot, SourceHealth
from tests.clock import Clock
from tests.fakes.endpoints import serving
from tests.faults.fault import LIMIT_SECONDS, fault
from tests.faults.programs import INTERVAL, collecting
from tests.waiting import until

pytestmark = pytest.mark.slow

STALLED_SECONDS = STALLED_INTERVALS * DEFAULT_INTERVAL_SECONDS + STALLED_GRACE_SECONDS
RESTARTED = "when the kubelet restarts the container"
LATE_BY = 1
UP = Snapshot(1.8e9, (), (SourceHealth("dcgm", True, 0.1),))


@fault(
    name="A collection hangs: what the last one read stays exposed",
    shows=("gpugauge_last_collection_timestamp_seconds > 0", 'gpugauge_source_up{source="dcgm"} 1'),
    unready=f"no collection has ended for {LATE_MIN_SECONDS + LATE_BY:.0f} s",
    recovery=f"when the collection ends; else {RESTARTED}, because `/livez` fails after {STALLED_SECONDS:.0f} s",
)
def test_a_collection_that_hangs_makes_the_program_unready_and_then_not_live(row):
    clock, hangs, ends = Clock(), threading.Event(), threading.Event()

    def collect():
        if hangs.is_set():
            ends.wait()
        return UP

    with collecting(collect, clock=clock) as get:
        until(lambda: get("/readyz")[0] == 200)
        hangs.set()
        clock.now += LATE_MIN_SECONDS + LATE_BY
        row.wait_until_shown(get)
        assert get("/livez")[0] == 200
        clock.now += STALLED_SECONDS
        assert get("/livez")[0] == 503
        hangs.clear()
        ends.set()
        row.wait_until_recovered(get, lambda _: get("/livez")[0] == 200, INTERVAL)


@fault(
    name="A collection fails because of a defect in gpugauge",
    shows=("gpugauge_collection_failures_total > 0",),
    absent=("gpugauge_source_up", "gpugauge_last_collection_timestamp_seconds", "DCGM_"),
)
def test_a_collection_that_fails_exposes_nothing_old_and_the_next_one_is_made(row):
    fails = threading.Event()

    def collect():
        if fails.is_set():
            raise ValueError("a defect")
        return UP

    with collecting(collect) as get:
        until(lambda: get("/readyz")[0] == 200)
        fails.set()
        row.wait_until_shown(get)
        fails.clear()
        row.wait_until_recovered(get, lambda exposed: exposed.value("gpugauge_source_up") == 1, INTERVAL)


@fault(
    name="A driver is loaded on the node, and its libraries are missing in the container",
    shows=(
        'gpugauge_source_up{source="dcgm"} 0',
        'gpugauge_source_problem{source="dcgm",reason="library_missing"} 1',
    ),
    absent=("DCGM_", "gpugauge_device_info"),
    recovery=f"{RESTARTED}, because `/livez` fails after {PATIENCE_SECONDS:.0f} s",
)
@pytest.mark.process
def test_libraries_that_only_a_new_container_can_have_end_the_program(tmp_path, row):
    clock, driver = Clock(), tmp_path / "version"
    driver.touch()
    config = node_config(cli.parse(["--source", "dcgm"], {}), {})
    program = NodeProgram(config, clock, driver)
    try:
        with collecting(program.collect, program.restart_needed, program.unready) as get:
            row.wait_until_shown(get)
            assert get("/livez")[0] == 200
            clock.now += PATIENCE_SECONDS + 1
            until(lambda: get("/livez")[0] == 503)
    finally:
        program.close()


WITHOUT_HTTP = """
import ctypes, sys, threading, time
from exporter.__main__ import main

def end_http():
    threads = {}
    while "collection-loop" not in threads:  # it is started last
        threads = {thread.name: thread for thread in threading.enumerate()}
        time.sleep(0.1)
    ident = ctypes.c_ulong(threads["http"].ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(SystemExit))

threading.Thread(target=end_http, daemon=True).start()
sys.exit(main(sys.argv[1:]))
"""
"""A program whose HTTP thread is ended by an exception."""


@fault(name="The HTTP server of the program ends by itself", ends=1, recovery=RESTARTED)
@pytest.mark.parametrize(
    "flags", [("node", "--source", "simulated"), ("cluster", "--api-server", "http://127.0.0.1:1")], ids=lambda f: f[0]
)
@pytest.mark.process
def test_a_program_whose_http_server_has_ended_ends_with_one_message_and_status_1(row, flags):
    command = [sys.executable, "-c", WITHOUT_HTTP, *flags, "--address", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * LIMIT_SECONDS, check=False)
    assert done.returncode == row.ends, done.stderr
    errors = [line for line in done.stderr.splitlines() if "level=ERROR" in line]
    assert len(errors) == 1, done.stderr
    assert "the HTTP server has ended by itself" in errors[0]
    assert "SystemExit" in errors[0]


@fault(
    name="Another process listens on the port", ends=2, recovery="with another `--address`, or once the port is free"
)
@pytest.mark.parametrize(
    "flags", [("node", "--source", "simulated"), ("cluster", "--api-server", "http://127.0.0.1:1")], ids=lambda f: f[0]
)
@pytest.mark.process
def test_a_port_that_is_in_use_ends_the_start_with_one_message(row, flags):
    with serving() as other:
        command = [sys.executable, "-m", "exporter", *flags, "--address", f"127.0.0.1:{other.port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == row.ends
    assert done.stderr.splitlines()[-1].startswith(f"gpugauge: port {other.port} is already in use")
