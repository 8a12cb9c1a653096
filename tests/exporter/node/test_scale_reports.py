"""What users of GPU exporters reported, as tests on a running exporter: scale. A test is named after its report."""

import math
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

import msgspec
import pytest
import yaml

from bench.fixture import ROOT, WHOLE
from bench.growth import BUDGET_MIB
from exporter.node.attribution.kubelet.reason import MAX_ALLOCATIONS
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.source import SimulatedSource
from simulators.kubelet import ListBehavior
from tests.exporter.node.attribution.large_answer import large_answer
from tests.exporter.node.exporter_process import running_exporter
from tests.exporter.node.scenario_flow import EPOCH, SCENARIOS, config_of
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

DAEMONSET = ROOT / "deploy" / "manifests" / "daemonset.yaml"
MIG_56 = SCENARIOS["mig_56"]
READ_SECONDS = 1.0
"""What a read takes at least, and what no response may: it makes two or three slow calls."""
SCRAPERS = 3
COLLECTED_ONCE = ("--collect-interval", "3600000")
"""One full collection, and the next one after the test."""
UNITS = {"Mi": 2**20, "Gi": 2**30}


def memory_limit():
    """Bytes that the shipped DaemonSet allows the container."""
    (workload,) = [each for each in yaml.safe_load_all(DAEMONSET.read_text()) if each and each["kind"] == "DaemonSet"]
    limit = workload["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    return int(limit[:-2]) * UNITS[limit[-2:]]


def peak(*pids):
    """The most bytes that these processes had resident, each with the pages that it shares."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def scraping(node, pause):
    """Three scrapers, each with this pause after a response. Yields what they got: (seconds, body)."""
    responses, over = [], threading.Event()

    def scrape():
        while not over.wait(pause):
            began = time.monotonic()
            status, text = node.scraper.get("/metrics")
            assert status == 200
            responses.append((time.monotonic() - began, text))

    threads = [threading.Thread(target=scrape) for _ in range(SCRAPERS)]
    for thread in threads:
        thread.start()
    try:
        yield responses
    finally:
        over.set()
        for thread in threads:
            thread.join()


def slow(scrape):
    """Whether the devices were read, and that took long."""
    took = {labels["source"]: value for labels, value in scrape.series("gpugauge_source_read_duration_seconds")}
    return bool(scrape.up("dcgm") and took["dcgm"] > READ_SECONDS)


def test_report_53_scrapers_do_not_wait_for_a_slow_read_and_cause_none(tmp_path):
    with running_exporter(tmp_path, "dcgm", "--collect-interval", "3000", scenario=MIG_56) as node:
        node.set_events(CallFault("dcgmEntitiesGetLatestValues", delay=0.6))
        node.wait_for(slow, "slow")
        calls, began = node.kubelet.calls, time.monotonic()
        with scraping(node, 0.05) as responses:
            until(lambda: node.kubelet.calls > calls + 2)
        collections, took = node.kubelet.calls - calls, time.monotonic() - began
        assert quantiles([seconds for seconds, _ in responses], n=100)[98] < READ_SECONDS
        assert collections < len(responses)
        assert collections <= took / READ_SECONDS + 2
        assert node.scraper.faults == []
        node.wait_for(slow, "slow")


def test_report_53_three_scrapers_change_nothing(tmp_path):
    with running_exporter(tmp_path, "dcgm", *COLLECTED_ONCE, scenario=MIG_56, has_activity=False) as node:
        calls, text = node.kubelet.calls, node.scraper.get("/metrics")[1]
        with scraping(node, 0.0) as responses:
            until(lambda: len(responses) >= 60)
        assert {body for _, body in responses} == {text}
        assert node.kubelet.calls == calls


def replicas(devices):
    """250 pods on MIG devices with 80 replicas each, all of which are allocated."""
    ids = [f"{device}::{n}" for device in devices for n in range(80)]
    each = math.ceil(len(ids) / 250)
    return [
        ("team", f"worker-{n}", "main", "nvidia.com/mig-1g.10gb.shared", ids[n * each : (n + 1) * each])
        for n in range(250)
    ]


def test_report_56_56_mig_devices_and_250_pods_take_half_of_the_shipped_memory_limit_at_most(tmp_path):
    with running_exporter(tmp_path, "dcgm", scenario=MIG_56) as node:
        gpus = node.document.devices
        devices = [compute.uuid for gpu in gpus for instance in gpu.instances for compute in instance.compute]
        rows = replicas(devices)
        node.kubelet._allocations = lambda: rows
        node.wait_for(lambda s: len(s.series("gpugauge_allocation_replicas")) >= 250, "every pod")
        calls = node.kubelet.calls
        until(lambda: node.kubelet.calls > calls + 10)
        assert peak(node.process.pid, node.reader_pid()) <= memory_limit() / 2


def test_report_56_the_largest_answer_of_a_kubelet_is_read_within_the_shipped_memory_limit(tmp_path):
    with running_exporter(tmp_path, "dcgm") as node:
        answer = large_answer(MAX_ALLOCATIONS)
        node.kubelet.behavior = ListBehavior(response=answer)
        node.wait_for(lambda s: bool(s.up("kubelet") and not s.series("gpugauge_allocation_info")), "read")
        calls = node.kubelet.calls
        until(lambda: node.kubelet.calls > calls + 3)
        assert node.scraper.latest.up("kubelet")
        assert peak(node.process.pid, node.reader_pid()) <= memory_limit()


def test_report_56_with_56_mig_devices_and_changing_pods_memory_does_not_grow():
    counters = WHOLE.counters()
    readings = SimulatedSource(config_of("simulated", counters, scenario=MIG_56), lambda: EPOCH).read()
    command = (sys.executable, "-m", "bench.growth", "1500", str(WHOLE.fields))
    done = subprocess.run(
        command, input=msgspec.msgpack.encode(readings), capture_output=True, check=True, cwd=ROOT, env={**os.environ}
    )
    before, after = map(float, done.stdout.split())
    assert after - before < BUDGET_MIB
