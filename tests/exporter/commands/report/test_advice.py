"""What would be enough: never without enough data, never what would be too small."""

from dataclasses import replace

import pytest

from exporter.commands.report.advice import WorkloadNeed, advice

GB, GIB = 1e9, 1 << 30
H100 = "NVIDIA-H100-80GB-HBM3"
NEED = WorkloadNeed(("", "ns", "w"), "training", H100, "", 1.0, 100.0, 0.95, 0.1, 5 * GB, 80 * GB)
FLEET = {H100: 80 * GB, "NVIDIA-L4": 23 * GB, "NVIDIA-A100-SXM4-40GB": 40 * GB}


def advised(memories=FLEET, **changes):
    return advice(replace(NEED, **changes), memories)


@pytest.mark.parametrize(
    ("changes", "device"),
    [
        ({}, "1g.10gb"),
        ({"memory_p99": 8 * GB}, "1g.10gb"),
        ({"memory_p99": 8.1 * GB}, "1g.20gb"),
        ({"busy_p95": 0.12}, "2g.20gb"),
        ({"busy_p95": 0.3, "memory_p99": 30 * GB}, "3g.40gb"),
        ({"busy_p95": 0.4}, "4g.40gb"),
        ({"busy_p95": 0.6}, ""),
        ({"memory_p99": 33 * GB}, ""),
        ({"profile": "3g.40gb", "device_share": 3 / 7, "busy_p95": 0.2}, "1g.10gb"),
        ({"profile": "3g.40gb", "device_share": 3 / 7, "busy_p95": 0.5}, "2g.20gb"),
        ({"profile": "1g.10gb", "device_share": 1 / 7}, ""),
        ({"model": "NVIDIA-A30", "memory_p99": 4 * GB}, "1g.6gb"),
    ],
)
def test_the_smallest_profile_in_which_a_fifth_stays_free(changes, device):
    assert advised(**changes).device == device


@pytest.mark.parametrize(
    ("busy", "memory", "part"),
    [(0.05, 2, "1/8 of a GPU"), (0.05, 4, "1/4 of a GPU"), (0.3, 1, "1/2 of a GPU"), (0.5, 1, ""), (0.1, 20, "")],
)
def test_a_model_without_mig_is_advised_a_part(busy, memory, part):
    found = advised(model="NVIDIA-L4", busy_p95=busy, memory_p99=memory * GB, memory_total=23 * GB)
    assert found.device == part


def test_a_part_needs_to_know_the_memory():
    assert advised(model="NVIDIA-L4", memory_total=None).device == ""


def test_another_model_is_named_by_memory_only_and_only_a_smaller_one():
    assert advised().other_model == "NVIDIA-L4"
    assert advised(memory_p99=20 * GB).other_model == "NVIDIA-A100-SXM4-40GB"
    assert advised(memory_p99=40 * GB).other_model == ""
    assert advised(model="NVIDIA-L4").other_model == ""
    assert advised(profile="3g.40gb").other_model == ""
    assert advised({}).other_model == ""


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hours": 71.9}, "no advice: 72 h of the 72 h and 95% of the 80% coverage that it needs"),
        ({"hours": 20.0}, "no advice: 20 h of the 72 h and 95% of the 80% coverage that it needs"),
        ({"coverage": 0.5}, "no advice: 100 h of the 72 h and 50% of the 80% coverage that it needs"),
        ({"busy_p95": None}, "no advice: activity or memory is not known"),
        ({"memory_p99": None}, "no advice: activity or memory is not known"),
    ],
)
def test_without_enough_data_there_is_no_advice(changes, text):
    found = advised(**changes)
    assert (found.device, found.other_model, found.sharing) == ("", "", "")
    assert found.reason == text


def test_the_reason_has_the_numbers():
    assert advised().reason == "p95 busy 10%, p99 memory 4.7 GiB of 100 h with 95% coverage: fits with 20% to spare"


@pytest.mark.parametrize(
    ("workload_class", "text"),
    [("serving", "MIG or a whole GPU"), ("interactive", "time-slicing"), ("training", "a whole GPU or MIG"), ("", "a")],
)
def test_the_sharing_mode_follows_the_class(workload_class, text):
    assert advised(workload_class=workload_class).sharing.startswith(text)
