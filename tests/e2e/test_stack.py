"""The whole stack, headless: real exporters, Prometheus and Alertmanager over a simulated cluster."""

import contextlib
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from demo.processes import DemoError, PortInUseError, binary
from demo.receiver import WebhookReceiver
from demo.stack import Ports, Stack
from demo.view import lines, read_view
from tests.promql import selectors
from tests.test_contract import EXPRESSIONS, RECORDED

pytestmark = pytest.mark.e2e

LIMIT_SECONDS = 180.0
START_ATTEMPTS = 5
"""How often the stack is started with other ports: one that was free a moment ago may be in use."""


def free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports():
    """Ports that are free now, below those that the kernel gives to clients; the nodes' three follow each other."""
    while True:
        first = random.randrange(20000, 32000)
        if all(map(free, range(first, first + 6))):
            return Ports(prometheus=first, alertmanager=first + 1, node=first + 2, watcher=first + 5)


def until(condition, seconds=LIMIT_SECONDS):
    """The first true result of `condition`; fails after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.5)
    raise AssertionError(f"did not happen within {seconds:g} s")


@contextlib.contextmanager
def started_stack(receiver, *, honor_labels):
    """A running stack on free ports; it is started again with others when another process took one meanwhile."""
    with contextlib.ExitStack() as started:
        for attempts_left in reversed(range(START_ATTEMPTS)):
            try:
                stack = started.enter_context(Stack(free_ports(), receiver=receiver.url, honor_labels=honor_labels))
                break
            except PortInUseError:
                if not attempts_left:
                    raise
        yield stack


@pytest.fixture(scope="module", params=[True, False], ids=["honor_labels", "no_honor_labels"])
def running(request):
    with WebhookReceiver() as receiver, started_stack(receiver, honor_labels=request.param) as stack:
        yield stack, receiver


def firing(receiver):
    return {alert["labels"]["alertname"]: (route, alert) for route, alert in receiver.alerts()}


def test_both_alerts_arrive_and_their_labels_are_the_workloads(running):
    stack, receiver = running
    until(lambda: {"GPUPodLowUtilization", "GPUWorkloadPending"} <= firing(receiver).keys())
    arrived = firing(receiver)

    route, low = arrived["GPUPodLowUtilization"]
    assert route == "digest"
    wanted = {
        "namespace": "research", "pod": "ablation-7-xk2vp", "workload": "ablation-7", "workload_type": "job",
        "node": "gpu-a", "severity": "warning", "component": "gpu", "area": "efficiency",
    }  # fmt: skip
    assert wanted.items() <= low["labels"].items()
    assert "instance" not in low["labels"]
    assert re.search(r"busy [12] % of", low["annotations"]["description"])

    route, pending = arrived["GPUWorkloadPending"]
    assert route == "ticket"
    wanted = {"namespace": "vision", "workload": "segment-train", "workload_type": "job", "area": "capacity"}
    assert wanted.items() <= pending["labels"].items()
    assert not {"instance", "pod", "reason"} & pending["labels"].keys()
    assert pending["annotations"]["reason"] == "insufficient_gpu"
    assert pending["annotations"]["pods"] == "2"

    more = {"GPUAlertingWatchdog", "GPUPendingDemandWhileFree"}  # they arrive sooner or later than the two
    assert set(arrived) - more == {"GPUPodLowUtilization", "GPUWorkloadPending"}, "another alert fires"
    assert stack.ended() is None


def test_every_target_is_up_and_every_rule_is_healthy(running):
    stack, _ = running
    up = until(lambda: [r for r in stack.prometheus_api.query("up") if r["value"][1] == "1"][:4])
    assert {r["metric"]["job"] for r in up} <= {"gpugauge-node", "gpugauge-cluster"}
    with urllib.request.urlopen(f"{stack.prometheus_api.url}/api/v1/rules") as answer:
        groups = json.load(answer)["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 20
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] == "err"] == []


def test_there_is_no_gap_between_history_and_the_present(running):
    stack, _ = running
    now = time.time()
    series = until(
        lambda: stack.prometheus_api.query_range(
            'pod:gpu_busy:ratio{namespace="research",pod="ablation-7-xk2vp"}', now - 3000, time.time(), 30
        )
    )
    assert len(series) == 1
    times = [at for at, _ in series[0]["values"]]
    assert len(times) >= 95
    assert max(b - a for a, b in itertools.pairwise(times)) <= 60


def test_the_view_shows_workloads_shared_devices_and_partitioned_gpus(running):
    stack, _ = running
    view = until(lambda: read_view(stack.prometheus_api, stack.alertmanager_api))
    text = "\n".join(lines(view, ()))
    assert re.search(
        r"gpu gpu-a 5 busy=[0-5]% tensor=[01]% memory=\d+% workload=research/ablation-7$", text, re.MULTILINE
    )
    assert "dev/notebook-lena, dev/notebook-timo, inference/ocr-small" in text
    assert "gpu gpu-b 0 busy=- tensor=- memory=- workload=partitioned" in text


def test_simulated_devices_are_exposed_as_such(running):
    stack, _ = running
    found = until(lambda: stack.prometheus_api.query("gpugauge_build_info{job='gpugauge-node'}"))
    assert {r["metric"]["source"] for r in found} == {"simulated"}


ABSENT = {"adapter", "workload"}
"""Selected where they are empty or not, and not in the demo: nothing is adapted, and no allocation has its workload."""
NOT_THERE = {
    "cluster:gpu_pod_scheduling_wait_seconds_bucket:increase1h",
    "cluster:gpu_watcher_away:info",
    "model:gpu_idle_devices:count15m",
    "namespace:gpu_exempt:info",
    "namespace_pod:gpu_pending_starting_since_timestamp:seconds",
    "node:gpu_exporter_down:ratio",
    "node:gpu_fault:info",
    "node:gpu_throttled:info",
    "pod:gpu_elsewhere:info",
    "pod:gpu_exempt:info",
    "pod:gpu_idle_devices:count15m",
    "pod:gpu_moved:info",
    "workload:gpu_idle_devices:count15m",
    "workload:gpu_pending_own_objective:seconds",
    "workload:gpu_pending_queued:info",
    "workload:gpu_short_pods_busy:max",
}
"""Recorded only while something is wrong or unusual, or after more time than the test takes."""


def test_labels_that_rules_and_panels_select_recorded_series_by_are_on_them(running):
    stack, _ = running
    until(lambda: stack.prometheus_api.query("pod:gpu_busy:ratio"))
    selected = {}
    for where, expression in EXPRESSIONS.items():
        for name, matchers in selectors(expression):
            if name in RECORDED - NOT_THERE and ":" in name:
                selected.setdefault(name, {}).update(dict.fromkeys(matchers, where))
    assert len(selected) > 20
    for name, matchers in selected.items():
        found = stack.prometheus_api.query(name)
        present = {label for series in found for label in series["metric"]} | {"cluster"} | ABSENT
        assert found, f"{name} is not recorded in the demo"
        assert not {label: where for label, where in matchers.items() if label not in present}, name


def demo(ports, prefix=(), **more):
    command = [*prefix, sys.executable, "-m", "demo"]
    for name, port in ports.items():
        command += [f"--{name}-port", str(port)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **(streams | more))


def test_a_port_in_use_is_one_message():
    with WebhookReceiver() as blocker:
        port = int(blocker.url.rpartition(":")[2])
        process = demo({"prometheus": port})
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == f"demo: port {port} is already in use: choose another with --prometheus-port"


def started_demo(folder, prefix=(), **more):
    """A demo whose Prometheus listens; started again when another process took one of its ports."""
    for _ in range(START_ATTEMPTS):
        ports = free_ports()
        chosen = {
            "prometheus": ports.prometheus,
            "alertmanager": ports.alertmanager,
            "node": ports.node,
            "watcher": ports.watcher,
        }
        # nohup starts tests with SIGHUP ignored, which a demo would inherit; a handler is not inherited.
        before = signal.signal(signal.SIGHUP, lambda *_: None)
        try:
            process = demo(chosen, prefix, env={**os.environ, "TMPDIR": str(folder)}, **more)
        finally:
            signal.signal(signal.SIGHUP, before)
        until(lambda: process.poll() is not None or not free(ports.prometheus))  # noqa: B023 called at once
        if process.poll() is None:
            return process
        _, err = process.communicate()
        assert "already in use" in err
    raise AssertionError(f"no free ports in {START_ATTEMPTS} attempts")


@pytest.fixture
def short_folder():
    """A folder with a short path: that of a unix socket has at most 107 bytes, and those of pytest are long."""
    with tempfile.TemporaryDirectory(prefix="gpugauge-e2e-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["ctrl_c", "sigterm", "sighup"])
def test_a_signal_ends_everything_and_nothing_is_left(short_folder, number):
    # A shell starts background jobs with SIGINT ignored, and the demo inherits that.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = started_demo(short_folder)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        os.killpg(process.pid, number)
        os.killpg(process.pid, signal.SIGTERM)  # a second signal must not interrupt the end
        out, _ = process.communicate(timeout=60)
    finally:
        end(process)
    assert out.splitlines()[-1] == "ended; nothing is left running"
    assert process.returncode == 0
    assert list(short_folder.iterdir()) == []
    assert not processes_of(short_folder)


def processes_of(folder):
    """Every process of the demo, however indirect: they inherit its TMPDIR. A port cannot outlive its process."""
    return [each for each in Path("/proc").glob("[0-9]*/environ") if str(folder).encode() in read(each)]


PARENT = (sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))")


@pytest.mark.parametrize("prefix", [(), PARENT], ids=["the demo", "its parent process"])
def test_when_the_demo_or_its_parent_process_is_killed_no_process_is_left(short_folder, prefix):
    process = started_demo(short_folder, prefix)
    assert len(processes_of(short_folder)) > 5
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not processes_of(short_folder), 60)


def test_when_its_terminal_is_closed_no_process_and_no_file_is_left(short_folder):
    terminal, end_of_demo = os.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), end_of_demo)
    try:
        process = started_demo(short_folder, OWN_TERMINAL, **streams)
    finally:
        os.close(end_of_demo)
        os.close(terminal)
    try:
        assert process.wait(60) == 0
    finally:
        end(process)
    until(lambda: not processes_of(short_folder), 60)
    assert list(short_folder.iterdir()) == []


OWN_TERMINAL = (
    sys.executable,
    "-c",
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])",
)
"""Makes the terminal that is its standard input the controlling one, then executes the rest of its command line."""


def end(process):
    """Terminate it, and kill it only when it does not end: the processes that it started would outlive it."""
    process.terminate()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_missing_program_is_one_message():
    with pytest.raises(DemoError, match="no-such-program is not on PATH: install it, or run 'make setup'"):
        binary("no-such-program")
