"""Alerts on nodes: they stop offering GPUs, reject pods, or have GPUs that are used outside of Kubernetes."""

import pytest

from alerts.alerting import nodes
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import check, firing, on_node, on_watcher

pytestmark = pytest.mark.prometheus

GROUPS = (nodes.GROUP,)
UNREGISTERED, UNHEALTHY, MISMATCH = "GPUDevicePluginNotRegistered", "GPUNodeDevicesUnhealthy", "GPUNodeCapacityMismatch"
OUTSIDE, REJECTS = "GPUMemoryUsedUnallocated", "GPUPodAdmissionFailures"
GIB = 1 << 30


def _offers(fixture: RuleFixture, node: str, capacity: str, allocatable: str, **labels: str) -> None:
    for name, values in (("capacity", capacity), ("allocatable", allocatable)):
        resource = {"node": node, "resource": "nvidia_com_gpu", **labels}
        on_watcher(fixture, f"gpugauge_node_gpu_{name}", resource, values)


def _in_maintenance(fixture: RuleFixture, node: str, reason: str) -> None:
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": node, "reason": reason}, always(1))


def test_a_node_that_stops_offering_gpus_is_reported(tmp_path):
    """Allocatable below capacity, and capacity below what the exporter reads, where GPUs are not shared."""
    fixture = RuleFixture()
    _offers(fixture, "sound", always(8), always(8))
    _offers(fixture, "unhealthy", always(8), "8x19 0x200")
    _offers(fixture, "upgraded", always(8), always(0))
    _in_maintenance(fixture, "upgraded", "driver_upgrade")
    _offers(fixture, "cordoned", always(8), always(7))
    _in_maintenance(fixture, "cordoned", "cordon")
    _offers(fixture, "fewer", always(7), always(7))
    _offers(fixture, "sliced", always(4), always(4))
    on_watcher(fixture, "gpugauge_node_info", {"node": "sliced", "sharing": "time-slicing"}, always(1))
    _offers(fixture, "mig", always(0), always(0))
    on_node(fixture, "gpugauge_device_info", {"node": "mig", "UUID": "GPU-1", "mig_mode": "enabled"}, always(1))
    for node in ("sound", "unhealthy", "upgraded", "cordoned", "fewer", "sliced", "mig"):
        on_node(fixture, "gpugauge_devices_observed", {"node": node}, always(8))
    firing(fixture, UNHEALTHY, 15, "node", "cordoned")
    firing(fixture, UNHEALTHY, 21, "node", "cordoned", "unhealthy")
    firing(fixture, MISMATCH, 14, "node")
    firing(fixture, MISMATCH, 16, "node", "fewer")
    check(tmp_path, fixture, groups=GROUPS)


def test_f28_a_device_plugin_that_has_gone_is_reported_unless_nothing_can_run_there(tmp_path):
    fixture = RuleFixture()
    for node, schedulable in (("gone", 1), ("cordoned", 0), ("cordoned-with-pods", 0), ("planned", 1)):
        on_watcher(fixture, "gpugauge_node_device_plugin_registered", {"node": node}, always(0))
        on_watcher(fixture, "gpugauge_node_gpu_schedulable", {"node": node}, always(schedulable))
    on_watcher(fixture, "gpugauge_node_device_plugin_registered", {"node": "sound"}, always(1))
    on_watcher(fixture, "gpugauge_gpu_pod_info", {"node": "cordoned-with-pods", "gpu_pod": "p"}, always(1))
    _in_maintenance(fixture, "planned", "planned")
    firing(fixture, UNREGISTERED, 14, "node")
    firing(fixture, UNREGISTERED, 16, "node", "gone", "cordoned-with-pods")
    check(tmp_path, fixture, groups=GROUPS)


def test_three_rejected_pods_within_an_hour_are_reported(tmp_path):
    fixture = RuleFixture()
    for node, values in (
        ("three", "_x20 3x400"),
        ("two", "_x20 2x400"),
        ("old", "9x400"),
        ("restarted", "9x99 0x300"),
        ("hole", "_x1 2x20 _x20 2x300"),
    ):
        labels = {"node": node, "gpu_namespace": "team", "workload": "w"}
        on_watcher(fixture, "gpugauge_pod_admission_failures_total", labels, values)
    firing(fixture, REJECTS, 8, "node", "old", "restarted")
    firing(fixture, REJECTS, 13, "node", "old", "restarted", "three")
    firing(fixture, REJECTS, 72, "node", "three")
    firing(fixture, REJECTS, 85, "node")
    check(tmp_path, fixture, groups=GROUPS)


def test_three_workloads_that_failed_on_a_node_are_a_digest_and_two_are_not(tmp_path):
    fixture = RuleFixture()
    for node, values in (("three", "2x19 3x200"), ("two", always(2))):
        on_watcher(fixture, "gpugauge_node_failed_workloads", {"node": node}, values)
    firing(fixture, "GPUNodeWorkloadsFailing", 14, "node")
    firing(fixture, "GPUNodeWorkloadsFailing", 16, "node", "three")
    check(tmp_path, fixture, groups=GROUPS)


def _device(fixture: RuleFixture, node: str, uuid: str, used: float, allocated: int) -> None:
    device = {"node": node, "UUID": uuid}
    on_node(fixture, "gpugauge_device_memory_used_bytes", device, always(used))
    on_node(fixture, "gpugauge_device_allocated_pods", device, always(allocated))


def test_gpus_in_use_that_no_pod_has_are_reported_where_allocations_are_complete(tmp_path):
    fixture = RuleFixture()
    for node, used, requested in (
        ("outside", GIB + 1, 1),
        ("little", GIB, 1),
        ("incomplete", 40 * GIB, 2),
        ("unmatched", 40 * GIB, 1),
    ):
        _device(fixture, node, f"{node}-0", 40 * GIB, 1)
        _device(fixture, node, f"{node}-1", used, 0)
        resource = {"node": node, "resource": "nvidia_com_gpu"}
        on_watcher(fixture, "gpugauge_node_gpu_requested", resource, always(requested))
    unmatched = {"node": "unmatched", "resource": "nvidia_com_gpu", "reason": "unknown_form"}
    on_node(fixture, "gpugauge_unmatched_device_ids", unmatched, always(1))
    _device(fixture, "without-watcher", "GPU-1", 40 * GIB, 0)
    firing(fixture, OUTSIDE, 29, "node")
    firing(fixture, OUTSIDE, 31, "node", "outside")
    check(tmp_path, fixture, groups=GROUPS)


def test_devices_of_a_finished_pod_are_reported_unless_a_new_pod_has_its_name(tmp_path):
    fixture = RuleFixture()
    for pod, phases in (("ended", ("Succeeded",)), ("runs", ("Running",)), ("again", ("Failed", "Running"))):
        ids = {"gpu_namespace": "team", "gpu_pod": pod}
        for number in range(2):
            on_node(fixture, "gpugauge_allocation_info", {"node": "n", "UUID": f"{pod}-{number}", **ids}, always(1))
        for phase in phases:
            on_watcher(fixture, "gpugauge_gpu_pod_phase", {**ids, "phase": phase}, always(1))
    firing(fixture, "GPUAllocatedToFinishedPod", 14, "pod")
    firing(fixture, "GPUAllocatedToFinishedPod", 16, "pod", "ended")
    check(tmp_path, fixture, groups=GROUPS)


def test_a_mig_layout_that_is_not_done_is_reported(tmp_path):
    fixture = RuleFixture()
    _in_maintenance(fixture, "stuck", "mig_reconfig")
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": "done", "reason": "mig_reconfig"}, "1x39 stale")
    firing(fixture, "GPUMIGReconfigStuck", 29, "node")
    firing(fixture, "GPUMIGReconfigStuck", 31, "node", "stuck")
    check(tmp_path, fixture, groups=GROUPS)


@pytest.mark.slow
def test_free_gpus_of_a_node_that_is_cordoned_for_a_day_are_a_digest(tmp_path):
    fixture = RuleFixture()
    for node, free, reason in (("forgotten", 8, "cordon"), ("full", 0, "cordon"), ("planned", 8, "cordon")):
        on_watcher(fixture, "gpugauge_node_gpu_free", {"node": node, "resource": "nvidia_com_gpu"}, f"{free}x3200")
        on_watcher(fixture, "gpugauge_node_maintenance", {"node": node, "reason": reason}, "1x3200")
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": "planned", "reason": "planned"}, "1x3200")
    firing(fixture, "GPUNodeCordonedWithGPUs", 23 * 60, "node")
    firing(fixture, "GPUNodeCordonedWithGPUs", 24 * 60 + 2, "node", "forgotten")
    check(tmp_path, fixture, groups=GROUPS)
