"""The whole stack, headless: real exporters, Prometheus and Alertmanager over a simulated cluster."""

import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from demo.processes import DemoError, binary
from demo.receiver import WebhookReceiver
from demo.stack import Ports, Stack
from demo.view import lines, look
from tests.promql import selectors
from tests.test_contract import EXPRESSIONS, RECORDED

pytestmark = pytest.mark.slow

PATIENCE = 120.0


def free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports():
    """Ports nobody uses, below those that the kernel gives to clients; the three of the nodes follow each other."""
    while True:
        first = random.randrange(20000, 32000)
        if all(map(free, range(first, first + 6))):
            return Ports(prometheus=first, alertmanager=first + 1, node=first + 2, watcher=first + 5)


def until(condition, seconds=PATIENCE):
    """The first true answer of `condition`; fails after some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.5)
    raise AssertionError("it did not come in time")


@pytest.fixture(scope="module", params=[True, False], ids=["honor_labels", "no_honor_labels"])
def running(request):
    with (
        WebhookReceiver() as receiver,
        Stack(free_ports(), receiver=receiver.url, honor_labels=request.param) as stack,
    ):
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
    assert "busy 2" in low["annotations"]["description"]

    route, pending = arrived["GPUWorkloadPending"]
    assert route == "ticket"
    wanted = {"namespace": "vision", "workload": "segment-train", "workload_type": "job", "area": "capacity"}
    assert wanted.items() <= pending["labels"].items()
    assert not {"instance", "pod", "reason"} & pending["labels"].keys()
    assert pending["annotations"]["reason"] == "insufficient_gpu"
    assert pending["annotations"]["pods"] == "2"

    assert set(arrived) == {"GPUPodLowUtilization", "GPUWorkloadPending"}, "nothing else may fire"
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


def test_history_joins_the_present_without_a_gap(running):
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


def test_the_picture_names_owners_shares_and_divisions(running):
    stack, _ = running
    picture = until(lambda: look(stack.prometheus_api, stack.alertmanager_api))
    text = "\n".join(lines(picture, ()))
    assert re.search(r"gpu gpu-a 5 busy=[0-5]% tensor=[01]% memory=\d+% owner=research/ablation-7$", text, re.MULTILINE)
    assert "dev/notebook-lena, dev/notebook-timo, inference/ocr-small" in text
    assert "gpu gpu-b 0 busy=- tensor=- memory=- owner=divided" in text


def test_simulated_pages_say_so(running):
    stack, _ = running
    found = until(lambda: stack.prometheus_api.query("gpugauge_build_info{job='gpugauge-node'}"))
    assert {r["metric"]["source"] for r in found} == {"simulated"}


ABSENT = {"namespace_pod_gpu:gpugauge_holder:info": {"workload"}}
"""Selected where it is empty, and filled only by an exporter that knows owners."""


def test_labels_that_rules_and_panels_select_recorded_series_by_are_on_them(running):
    stack, _ = running
    until(lambda: stack.prometheus_api.query("pod:gpu_busy:ratio"))
    asked = {}
    for where, expression in EXPRESSIONS.items():
        for name, matchers in selectors(expression):
            if name in RECORDED:
                asked.setdefault(name, {}).update(dict.fromkeys(matchers, where))
    assert len(asked) > 20
    for name, matchers in asked.items():
        found = stack.prometheus_api.query(name)
        there = {label for series in found for label in series["metric"]} | {"cluster"} | ABSENT.get(name, set())
        assert found, f"{name} is recorded by nothing in the demo"
        assert not {label: where for label, where in matchers.items() if label not in there}, name


def demo(ports, **more):
    command = [sys.executable, "-m", "exporter", "demo"]
    for name, port in ports.items():
        command += [f"--{name}-port", str(port)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more
    )


def test_a_taken_port_is_one_clear_sentence():
    with WebhookReceiver() as blocker:
        port = int(blocker.url.rpartition(":")[2])
        process = demo({"prometheus": port})
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == f"gpugauge demo: port {port} is taken: choose another with --prometheus-port"


def test_ctrl_c_ends_everything_and_leaves_nothing_behind(tmp_path):
    ports = free_ports()
    chosen = {
        "prometheus": ports.prometheus,
        "alertmanager": ports.alertmanager,
        "node": ports.node,
        "watcher": ports.watcher,
    }
    # As from a script's background job, where SIGINT is ignored until somebody asks for it.
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = demo(chosen, env={**os.environ, "TMPDIR": str(tmp_path)})
    finally:
        signal.signal(signal.SIGINT, ignored)
    try:
        until(lambda: process.poll() is not None or not free(ports.prometheus))
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    finally:
        end(process)
    assert out.splitlines()[-1] == "ended; nothing is left running"
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert all(free(port) for port in chosen.values())
    assert not [c for c in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in read(c)]


def end(process):
    """In order if possible: what it started would outlive a kill."""
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


def test_a_missing_program_is_one_clear_sentence():
    with pytest.raises(DemoError, match="no-such-program is not on PATH: install it, or run 'make setup'"):
        binary("no-such-program")
