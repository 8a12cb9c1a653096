"""What users of GPU exporters reported, as tests on a running exporter: lifecycle. A test is named after its report."""

import os
import signal
from pathlib import Path

import grpc
import pytest
import yaml

from exporter.node.simulation.document import CallFault, GpuLoss
from exporter.node.simulation.scenario import load
from simulators.kubelet import NORMAL, ListBehavior
from tests.exporter.node.exporter_process import running_exporter
from tests.fakes.build import build
from tests.opened_gpus import opened_gpus
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

MANIFESTS = Path(__file__).parents[3] / "deploy" / "manifests"
THIRD = load("whole").document.devices[2].uuid
RESPONSE_SECONDS, RELEASE_SECONDS, STOP_SECONDS = 2.0, 5.0, 5.0
"""What the reports ask for: of a response, until no GPU is open after an unbind, and of the end after SIGTERM."""
VALUES = 8 * 24
"""Of eight healthy GPUs: the rows of the default file but vGPU license."""


@pytest.fixture
def running(tmp_path):
    """Starts an exporter of the scenario `whole` over one of the sources, which has read every value."""

    def start(source):
        name = "dcgm" if source == "embedded engine" else source
        ready = source in ("nvml", "dcgm")
        return running_exporter(tmp_path, name, scenario="whole", embedded=not ready, ready=ready)

    return start


def settle(node):
    """Wait until every value is there; where that was not done yet, give the exporter its libraries and kubelet."""
    if not any(node.libraries.iterdir()):
        build(node.libraries)
        node.kubelet.start()
    return node.wait_for(lambda s: len(s.measured()) >= VALUES and s.up("kubelet"), "every value")


def threads(pid):
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def number_of_collections(scrape):
    return scrape.value("gpugauge_last_collection_timestamp_seconds")


def test_report_22_a_kubelet_that_restarts_or_hiccups_interrupts_no_series(running):
    with running("dcgm") as node:
        before, number = node.wait_until_up(), node.scraper.recent[-1][0]
        node.kubelet.stop()
        node.wait_for(lambda s: s.reasons("kubelet") == {"socket_missing"}, "stopped")
        node.kubelet.start()
        node.wait_for(lambda s: s.up("kubelet"), "started again at the same path", before)
        for _ in range(3):
            node.kubelet.behavior = ListBehavior(grpc.StatusCode.UNAVAILABLE)
            node.wait_for(lambda s: not s.up("kubelet"), "one call fails")
            node.kubelet.behavior = NORMAL
            node.wait_for(lambda s: s.up("kubelet"), "the next one succeeds")
        assert {frozenset(scrape.dcgm()) for _, scrape in node.scraper.after(number)} == {frozenset(before.dcgm())}
        assert node.scraper.faults == []


def test_report_24_a_hung_call_for_one_gpu_costs_that_gpu_and_no_response(running):
    with running("nvml") as node:
        before = settle(node)
        node.set_events(CallFault("*", hang=True, device=THIRD))
        node.wait_for(lambda s: s.reasons("nvml") == {"gpu_hung"}, "hung")
        counts = []
        for _ in range(15):
            counts.append((threads(node.process.pid), threads(node.reader_pid())))
            last = node.scraper.latest
            node.wait_for(lambda s, last=last: number_of_collections(s) != number_of_collections(last), "next")
        assert max(count for _, count in counts) <= counts[0][1] + 1, "threads of the reader process"
        assert max(count for count, _ in counts) <= counts[0][0] + 2, "threads of the exporter"
        latest = node.scraper.latest
        up = {labels["UUID"]: value for labels, value in latest.series("gpugauge_device_up")}
        assert [uuid for uuid, value in up.items() if not value] == [THIRD]
        assert {line for line in before.dcgm() if THIRD not in line} <= latest.dcgm()
        assert not any(THIRD in line for line in latest.dcgm())
        assert node.scraper.faults == []
        assert node.scraper.slowest < RESPONSE_SECONDS


def test_report_24_probes_wait_longer_than_a_slow_response():
    found = []
    for path in MANIFESTS.glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            pod = ((document or {}).get("spec") or {}).get("template", {}).get("spec", {})
            for container in pod.get("containers", ()):
                found += [container[name]["timeoutSeconds"] for name in container if name.endswith("Probe")]
    assert len(found) >= 4
    assert min(found) >= 3


@pytest.mark.parametrize("source", ["nvml", "embedded engine", "auto"])
def test_report_25_no_gpu_stays_open_after_an_unbind_and_sigterm_ends_it_soon(running, source):
    with running(source) as node:
        before = settle(node)
        assert len(opened_gpus(node.process.pid)) >= 8
        node.set_events(GpuLoss(THIRD, node.scenario_time() + 0.5, 2.0, state="detached"))
        until(lambda: node.table.scenario.at(node.scenario_time()).unbinds)
        until(lambda: opened_gpus(node.process.pid) == [], RELEASE_SECONDS)
        node.wait_for(lambda s: not s.dcgm() and "driver_unbound" in s.text, "let go of")
        node.wait_for(lambda s: s.dcgm() == before.dcgm(), "bound again", before)
        node.set_events(CallFault("*", hang=True))
        until(lambda: node.table.scenario.at(node.scenario_time()).calls)
        node.scraper.stop()
        os.kill(node.process.pid, signal.SIGTERM)
        assert node.process.wait(STOP_SECONDS) == 0


def test_report_25_with_an_engine_in_another_process_no_gpu_is_open_here(running):
    with running("dcgm") as node:
        settle(node)
        assert opened_gpus(node.process.pid) == []
