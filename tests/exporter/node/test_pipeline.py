"""What must be true of every page over time: series die with what they describe, holders are never guessed."""

import pytest

from exporter.node.attribution.allocation import HOLD_SECONDS, HeldAllocations
from exporter.node.devices.readings import Readings
from tests.exporter.node.scenario_flow import (
    EPOCH,
    Breakable,
    Fixed,
    Simulation,
    default_counters,
    played,
    series_of,
)

HOLDER = ("namespace", "pod", "container")


def labelled(page):
    return [(metric, dict(pairs), value) for (metric, pairs), value in series_of(page.text).items()]


def dcgm(page):
    return [(metric, labels, value) for metric, labels, value in labelled(page) if metric.startswith("DCGM_")]


def instances(page):
    return {
        (labels["UUID"], labels["GPU_I_ID"], labels.get("GPU_CI_ID", ""))
        for _, labels, _ in labelled(page)
        if "GPU_I_ID" in labels
    }


def of(page, metric):
    return [(labels, value) for name, labels, value in labelled(page) if name == metric]


def test_a_reconfiguration_takes_every_series_of_the_instances_that_went():
    simulation = Simulation("mig_reconfigured")
    seen = []
    for t in (5, 25, 60):
        page, fresh = simulation.page(t), Simulation("mig_reconfigured").page(t)
        seen.append(instances(page))
        assert [line for line in labelled(page) if "UUID" in line[1]] == [
            line for line in labelled(fresh) if "UUID" in line[1]
        ]
    assert [len(found) for found in seen] == [2, 6, 1]


def test_board_quantities_appear_once_per_board_and_never_on_an_instance():
    for metric, labels, _ in dcgm(Simulation("mig", t=61).page()):
        if any(word in metric for word in ("POWER", "TEMP", "CLOCK", "ENERGY", "PCIE", "NVLINK", "REMAP")):
            assert "GPU_I_ID" not in labels, metric


def test_a_lost_board_loses_its_values_and_keeps_its_name():
    simulation = Simulation("lost")
    before, after = dcgm(simulation.page(5)), dcgm(simulation.page(20))
    assert before
    assert after == []
    assert {value for _, value in of(simulation.page(20), "gpugauge_device_up")} == {0}
    assert len(dcgm(simulation.page(45))) >= len(before)


def test_no_dcgm_series_outlives_the_pass_in_which_its_source_failed():
    simulation = Simulation("whole", t=61)
    assert dcgm(simulation.page())
    simulation.devices.reason = "connection_lost"
    page = simulation.page()
    assert dcgm(page) == []
    assert of(page, "gpugauge_device_info") == []
    assert of(page, "gpugauge_allocation_info") == []
    assert {labels["source"]: value for labels, value in of(page, "gpugauge_source_up")} == {
        "simulated": 0,
        "kubelet": 1,
    }
    assert [labels["reason"] for labels, _ in of(page, "gpugauge_source_problem")] == ["connection_lost"]
    simulation.devices.reason = ""
    assert dcgm(simulation.page())
    assert of(simulation.page(), "gpugauge_source_problem") == []


def test_a_shared_device_carries_explicitly_empty_pod_labels_and_a_mapping_series_for_each_holder():
    page = Simulation("time_sliced", t=61).page()
    assert dcgm(page)
    for metric, labels, _ in dcgm(page):
        assert [labels.get(name) for name in HOLDER] == ["", "", ""], metric
    for line in page.text.decode().splitlines():
        if line.startswith("DCGM_"):
            assert 'namespace="",pod="",container=""' in line
    mapping = of(page, "gpugauge_allocation_info")
    assert {(labels["gpu_pod"], labels["sharing"]) for labels, _ in mapping} == {
        ("notebook-lena-0", "time-slicing"),
        ("notebook-timo-0", "time-slicing"),
        ("ocr-small-5b8f6d7c9-qv7rn", "time-slicing"),
        ("batch-thumbnails-29x7k", "time-slicing"),
    }
    assert len({(metric, labels["UUID"]) for metric, labels, _ in dcgm(page)}) == len(dcgm(page))


@pytest.mark.parametrize(("since", "known"), [(0, True), (HOLD_SECONDS, True), (HOLD_SECONDS + 0.1, False)])
def test_holders_are_kept_for_a_minute_without_a_kubelet_and_then_are_unknown(since, known):
    now = [0.0]
    simulation = Simulation("whole", t=61, held=HeldAllocations(clock=lambda: now[0]))
    before = {labels["pod"] for _, labels, _ in dcgm(simulation.page())}
    assert len(before) == 4  # three pods, and a free board
    now[0] += since
    simulation.kubelet.reason = "socket_missing"
    page = simulation.page()
    assert {labels["pod"] for _, labels, _ in dcgm(page)} == (before if known else {""})
    assert all(name in labels for _, labels, _ in dcgm(page) for name in HOLDER)
    assert bool(of(page, "gpugauge_device_holders")) == known  # 0 would say free
    assert bool(of(page, "gpugauge_allocation_info")) == known
    assert [labels["reason"] for labels, _ in of(page, "gpugauge_source_problem")] == ["socket_missing"]
    simulation.kubelet.reason = ""
    assert {labels["pod"] for _, labels, _ in dcgm(simulation.page())} == before


def test_without_attribution_nobody_is_said_to_hold_anything():
    page = Simulation("whole", t=61, attributed=False).page()
    assert {labels["pod"] for _, labels, _ in dcgm(page)} == {""}
    assert of(page, "gpugauge_device_holders") == []
    assert [labels["source"] for labels, _ in of(page, "gpugauge_source_up")] == ["simulated"]


def test_a_page_without_devices_is_a_page():
    page = played(Breakable(Fixed("dcgm", Readings("dcgm", EPOCH, ()))), None, default_counters()).page()
    assert dcgm(page) == []
    assert of(page, "gpugauge_devices_observed") == [({"hostname": "node-1"}, 0)]
