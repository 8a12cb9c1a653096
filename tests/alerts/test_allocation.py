"""Alerts on use without an allocation, on containers that restart, and on full shared GPUs."""

import pytest

from tests.alerts.fleet import Gpu, Pod, always
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test
from tests.alerts.test_idle import situation

pytestmark = pytest.mark.prometheus


def firing(fixture: RuleFixture, alert: str, minute: float, by: str, *found: dict[str, str]) -> None:
    expression = f'count by ({by}) (ALERTS{{alertname="{alert}", alertstate="firing"}})'
    fixture.expect(expression, minute, *((labels, 1.0) for labels in found))


def check(tmp_path, fixture: RuleFixture) -> None:
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


def test_a_pod_that_uses_devices_without_an_allocation_is_reported_once(tmp_path):
    fixture = RuleFixture()
    for device in ("a", "b"):
        labels = {"node": "n1", "UUID": device, "gpu_namespace": "ml", "gpu_pod": "p", "job": "gpugauge-node"}
        fixture.add("gpugauge_pod_gpu_unallocated_use", labels, always(1))
    firing(fixture, "GPUUsedWithoutAllocation", 8, "pod")
    firing(
        fixture, "GPUUsedWithoutAllocation", 12, "namespace, pod, node", {"namespace": "ml", "pod": "p", "node": "n1"}
    )
    check(tmp_path, fixture)


def test_containers_that_restart_with_devices_are_reported_by_workload(tmp_path):
    fixture = RuleFixture()
    for name, restarts in (("loops", "0+1x15 15x100"), ("once", "0x30 1x100")):
        node, _ = situation(fixture, name, (Pod(),), Gpu(always(0)))
        labels = {"namespace": node.namespace, "pod": "p", "container": "main", "job": "kube-state-metrics"}
        fixture.add("kube_pod_container_status_restarts_total", labels, restarts)
    no_devices = {"namespace": "cpu-only", "pod": "p", "container": "main", "job": "kube-state-metrics"}
    fixture.add("kube_pod_container_status_restarts_total", no_devices, "0+1x100")
    firing(
        fixture,
        "GPUWorkloadCrashLooping",
        25,
        "namespace, workload",
        {"namespace": "own-true-loops", "workload": "job-p"},
    )
    check(tmp_path, fixture)


def test_a_full_shared_device_is_reported_where_a_serving_pod_uses_it(tmp_path):
    fixture = RuleFixture()
    rows = {"full": ("serving", 0.97, "p q"), "free": ("serving", 0.5, "p q"), "alone": ("serving", 0.97, "p")}
    for name, (workload_class, load, users) in {**rows, "training": ("training", 0.97, "p q")}.items():
        pods = (Pod(workload_class=workload_class), Pod("q"))
        situation(fixture, name, pods, Gpu(always(load), pods=tuple(users.split())))
    firing(fixture, "GPUSharedDeviceContended", 25, "node", {"node": "node-own-true-full"})
    check(tmp_path, fixture)
