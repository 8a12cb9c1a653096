"""What reports sum up: energy of whoever has a GPU alone, memory of a workload, and how many devices were how busy."""

import pytest

from tests.alerts.promtool import RuleFixture
from tests.alerts.test_aggregates import NAME, check, expect

pytestmark = pytest.mark.prometheus

SECONDS = 30
"""Between two samples."""


class GpuNode:
    """A node with an exporter of ours, and pods that the watcher knows; every GPU draws 100 W."""

    def __init__(self, fixture: RuleFixture) -> None:
        self.fixture = fixture

    def pod(self, pod: str, workload: str) -> None:
        labels = {**_named(pod), "node": "n", "workload": workload, "workload_type": "Job", "cluster": "c"}
        self.fixture.add("gpugauge_gpu_pod_info", {**labels, "workload_class": "training"}, "1x60")

    def gpu(self, gpu: str, *pods: str, instance: str = "", busy: str = "0.5x60", sharing: str = "exclusive") -> None:
        """Expose a GPU, or a MIG device of it, that is allocated to these pods."""
        device = {"UUID": gpu, "GPU_I_ID": instance, "node": "n", "cluster": "c"}
        self.fixture.add("gpugauge_device_info", {**device, "model": "M"}, "1x60")
        self.fixture.add("gpugauge_device_allocated_pods", device, f"{len(pods)}x60")
        for pod in pods:
            labels = {**device, **_named(pod), "sharing": sharing}
            self.fixture.add("gpugauge_allocation_info", labels, "1x60")
        if len(pods) == 1 and sharing == "exclusive":
            self.fixture.add("gpugauge_allocation_busy_ratio", {**device, **_named(pods[0])}, busy)
            self.fixture.add("gpugauge_allocation_memory_used_bytes", {**device, **_named(pods[0])}, "4x20 8x40")
        if instance in ("", "1"):
            power = {name: device[name] for name in ("UUID", "node", "cluster")}
            self.fixture.add("gpugauge_gpu_power_watts", power, "100x60")
            self.fixture.add("gpugauge_gpu_energy_joules_total", power, f"0+{100 * SECONDS}x60")


def _named(pod: str) -> dict[str, str]:
    return {"namespace": "ns", "pod": pod, "gpu_namespace": "ns", "gpu_pod": pod}


def fleet(fixture: RuleFixture) -> None:
    node = GpuNode(fixture)
    for pod, workload in (("p", "w"), ("q", "w"), ("r", "other"), ("s", "other")):
        node.pod(pod, workload)
    node.gpu("GPU-1", "p")
    node.gpu("GPU-2", "q", busy="0.005x60")
    node.gpu("GPU-3", "r", "s", sharing="time-slicing")
    node.gpu("GPU-4", "r", instance="1")
    node.gpu("GPU-4", "s", instance="2")
    node.gpu("GPU-5")
    node.gpu("GPU-6", "s", sharing="mps")


def test_energy_belongs_to_who_has_a_gpu_alone_and_what_is_shared_and_unallocated_makes_it_the_whole(tmp_path):
    fixture = RuleFixture()
    fleet(fixture)
    each = 100 * 300
    of_all = {"cluster:gpu_energy_joules:increase5m": 6 * each, "cluster:gpu_shared_energy_joules:increase5m": 3 * each}
    expect(fixture, 20, of_all, cluster="c")
    expect(fixture, 20, {"node:gpu_energy_joules:increase5m": 6 * each}, cluster="c", node="n")
    expect(fixture, 20, {"model:gpu_energy_joules:increase5m": 6 * each}, cluster="c", model="M")
    of_namespace = {"namespace:gpu_energy_joules:increase5m": 2 * each, "namespace:gpu_power_watts:sum": 200}
    expect(fixture, 20, of_namespace, cluster="c", namespace="ns")
    workload = {"cluster": "c", "namespace": "ns", "workload": "w", "workload_type": "Job"}
    expect(fixture, 20, {"workload:gpu_energy_joules:increase5m": 2 * each}, **workload)
    name = "pod:gpu_energy_joules:increase5m"
    pods = [({NAME: name, "cluster": "c", "namespace": "ns", "pod": pod}, each) for pod in "pq"]
    fixture.expect(name, 20, *pods)
    check(tmp_path, fixture)


def test_the_memory_of_a_workload_is_the_sum_of_its_devices_and_the_most_that_one_of_them_had(tmp_path):
    fixture = RuleFixture()
    fleet(fixture)
    for name, at, value in (("avg5m", 10, 8), ("avg5m", 20, 16), ("max5m", 10, 4), ("max5m", 11, 8)):
        found = f"workload:gpu_memory_used_bytes:{name}"
        labels = {"cluster": "c", "namespace": "ns", "workload": "w", "workload_type": "Job"}
        fixture.expect(f'{found}{{workload="w"}}', at, ({NAME: found, **labels}, value))
    expect(fixture, 20, {"namespace:gpu_memory_used_bytes:sum": 32}, cluster="c", namespace="ns")
    check(tmp_path, fixture)


def test_gpu_hours_are_those_of_five_minutes_and_shared_devices_have_none_that_were_not_used(tmp_path):
    fixture = RuleFixture()
    fleet(fixture)
    labels = {"cluster": "c", "namespace": "ns", "workload_type": "Job"}
    hours, unused = "workload:gpu_hours:sum5m", "workload:gpu_unused_hours:sum5m"
    devices = {"w": 2, "other": 5}
    found = [({NAME: hours, **labels, "workload": name}, number * 5 / 60) for name, number in devices.items()]
    fixture.expect(hours, 20, *found)
    idle = (1 - 0.5) + (1 - 0.005)
    fixture.expect(f'{unused}{{workload="w"}}', 20, ({NAME: unused, **labels, "workload": "w"}, idle * 5 / 60))
    check(tmp_path, fixture)


def test_every_device_whose_activity_is_known_is_in_one_bucket(tmp_path):
    fixture = RuleFixture()
    node = GpuNode(fixture)
    for number, busy in enumerate((0, 0.01, 0.05, 0.1, 0.3, 0.6, 1)):
        node.pod(f"p{number}", "w")
        node.gpu(f"GPU-{number}", f"p{number}", busy=f"{busy}x60")
    name = "workload:gpu_devices_by_activity:count5m"
    labels = {NAME: name, "cluster": "c", "namespace": "ns", "workload": "w", "workload_type": "Job"}
    found = {"0-1": 1, "1-10": 2, "10-30": 1, "30-60": 1, "60-100": 2}
    fixture.expect(name, 20, *(({**labels, "percent": bucket}, count) for bucket, count in found.items()))
    check(tmp_path, fixture)


def test_capacity_is_summed_per_model_and_cluster_and_two_watchers_count_once(tmp_path):
    fixture = RuleFixture()
    for node, free, schedulable in (("n1", 2, 1), ("n2", 4, 0)):
        for watcher in ("w1", "w2"):
            labels = {"node": node, "cluster": "c", "instance": watcher}
            gpus = {**labels, "model": "M", "resource": "nvidia_com_gpu"}
            for name, value in (("capacity", 8), ("allocatable", 7), ("requested", 7 - free), ("free", free)):
                fixture.add(f"gpugauge_node_gpu_{name}", gpus, f"{value}x20")
            fixture.add("gpugauge_node_gpu_schedulable", labels, f"{schedulable}x20")
            stranded = {**labels, "resource": "nvidia_com_gpu", "blocker": "cpu"}
            fixture.add("gpugauge_node_gpu_stranded", stranded, "1x20")
    sums = {"capacity": 16, "allocatable": 14, "requested": 8, "free": 2}
    for level, labels in (("model", {"model": "M"}), ("cluster", {})):
        named = {f"{level}:gpu_{name}:sum": value for name, value in sums.items()}
        expect(fixture, 5, named, cluster="c", resource="nvidia_com_gpu", **labels)
    expect(fixture, 5, {"cluster:gpu_stranded:sum": 2}, cluster="c", resource="nvidia_com_gpu", blocker="cpu")
    check(tmp_path, fixture)
