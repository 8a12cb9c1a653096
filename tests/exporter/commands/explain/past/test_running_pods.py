"""Likely causes of low utilization of a running pod, ranked, with what is missing."""

import json
from pathlib import Path

import pytest

from exporter.commands.explain.past.activity import DeviceActivity, PodActivity
from exporter.commands.explain.past.causes import LowUtilizationCause, causes
from exporter.config import ConfigError
from tests.exporter.commands.explain.past.pods import (
    ALLOCATIONS,
    BUSIEST,
    BUSY,
    CLOCKS,
    CPU,
    IO,
    PCIE,
    PODS,
    RESTARTS,
    TENSOR,
    USED,
    device,
    explained,
    running_answers,
    running_pod,
)

GOLDEN = Path(__file__).parents[4] / "golden" / "explain-past"


def found(*devices, **pod):
    return [str(each.cause) for each in causes(PodActivity(tuple(devices), **pod))]


def gpu(busy=0.5, busiest=0.5, sharing="exclusive", **more):
    return DeviceActivity("n1", "GPU-0", sharing, busy=busy, busiest=busiest, **more)


@pytest.mark.parametrize(
    ("expected", "devices", "pod"),
    [
        ([], [gpu()], {}),
        ([], [], {}),
        (["crash_looping"], [gpu()], {"restarts": 4.0}),
        ([], [gpu()], {"restarts": 2.0}),
        (["cpu_throttled"], [gpu()], {"cpu_throttled": 0.4}),
        ([], [gpu()], {"cpu_throttled": 0.05}),
        (["never_busy"], [gpu(0, 0.001), gpu(0, 0.002)], {}),
        (["rank_idle"], [gpu(), gpu(0, 0.002)], {}),
        (["rank_idle"], [gpu(0, 0.002), gpu(None, None, "time-slicing")], {}),
        (["data_operations"], [gpu(0.2, 0.9)], {}),
        (["data_operations"], [gpu()], {"io_waiting": 0.3}),
        (["pcie_bound"], [gpu(pcie=12e9)], {}),
        ([], [gpu(pcie=2e9)], {}),
        (["gpu_throttled"], [gpu(throttled=(("sw_power_cap", 0.4), ("hw_slowdown", 0.01)))], {}),
        (["shared"], [gpu(None, None, "time-slicing", pods=3)], {}),
        ([], [gpu(None, None, "time-slicing", pods=1)], {}),
        (["tensor_unused"], [gpu(tensor=0.002)], {}),
        ([], [gpu(tensor=0.2)], {}),
        ([], [gpu(0.05, 0.05, tensor=0.0)], {}),
    ],
)
def test_each_cause_is_found_where_its_number_is_notable(expected, devices, pod):
    assert found(*devices, **pod) == expected


def test_every_cause_has_a_number_a_meaning_and_a_remedy():
    for each in LowUtilizationCause:
        assert each.meaning
        assert each.remedy


def test_causes_are_ordered_by_how_much_they_explain():
    assert found(gpu(0.4, 0.9, tensor=0.0), cpu_throttled=0.9, io_waiting=0.3) == [
        "cpu_throttled", "data_operations", "tensor_unused",
    ]  # fmt: skip


def everything():
    """A pod with two GPUs, one of them idle, whose CPU is throttled while it waits for data."""
    answers = running_answers([0.2, 0.0], [0.9, 0.002])
    answers[TENSOR] = [(device("GPU-0"), 0.1), (device("GPU-1"), 0.0)]
    answers[PCIE] = [(device("GPU-0"), 9e9), (device("GPU-1"), 1e6)]
    answers[PODS] = [(device("GPU-0"), 1), (device("GPU-1"), 1)]
    answers[CLOCKS] = [({"UUID": "GPU-0", "reason": "sw_power_cap"}, 0.25)]
    answers |= {CPU: [({}, 0.62)], IO: [({}, 0.31)], RESTARTS: [({}, 0)]}
    return answers


def test_a_running_pod_gets_ranked_causes(tmp_path, golden):
    text, _ = explained(tmp_path, [running_pod()], everything())
    golden(text, GOLDEN / "running.txt")


def test_programs_get_the_same(tmp_path):
    document = json.loads(explained(tmp_path, [running_pod()], everything(), "--json")[0])
    assert [each["cause"] for each in document["causes"]][:2] == ["cpu_throttled", "pcie_bound"]
    assert document["devices"][1]["busy"] == 0
    assert document["not_seen_in_prometheus"] == []


def test_what_is_missing_is_said_and_nothing_is_made_up(tmp_path, golden):
    text, _ = explained(tmp_path, [running_pod()], {})
    golden(text, GOLDEN / "nothing-known.txt")


def test_a_pod_without_a_cpu_limit_is_not_throttled(tmp_path):
    text, _ = explained(tmp_path, [running_pod()], {USED: [({}, 1)]})
    assert "CPU throttling" not in text


def test_queries_name_the_pod_and_the_cluster(tmp_path):
    _, queries = explained(tmp_path, [running_pod()], everything(), "--cluster", "a.b")
    assert all(r'cluster=~"a\\.b"' in each for each in queries)
    assert all(
        ('pod="p"' in each and 'namespace="default"' in each) or 'UUID=~"GPU-0|GPU-1"' in each for each in queries
    )


def test_a_pod_of_several_clusters_needs_the_name_of_one(tmp_path):
    answers = {ALLOCATIONS: [(device("GPU-0", cluster=name), 1) for name in ("west", "east")], BUSY: [], BUSIEST: []}
    with pytest.raises(ConfigError, match="default/p is in the clusters east, west: name one with --cluster"):
        explained(tmp_path, [running_pod()], answers)


def test_without_the_name_of_a_pod_prometheus_is_not_asked(tmp_path):
    text, queries = explained(tmp_path, [running_pod()], everything(), name="--json")
    assert queries == []
    assert json.loads(text)["pending"] == []
