"""Alerts on capacity: demand beside free GPUs, stranded GPUs, refused and waits work, quotas, and whole namespaces."""

import pytest

from alerts.alerting import capacity
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test
from tests.alerts.test_allocation import check, firing

pytestmark = pytest.mark.prometheus

WATCHER = {"job": "gpugauge-cluster"}
GPU = "nvidia_com_gpu"


def _free(fixture: RuleFixture, cluster: str, free: int, model: str = "H100", schedulable: int = 1) -> None:
    node = {**WATCHER, "cluster": cluster, "node": f"node-{model}"}
    fixture.add("gpugauge_node_gpu_free", {**node, "resource": GPU, "model": model}, always(free))
    fixture.add("gpugauge_node_gpu_schedulable", node, always(schedulable))


def _pending(fixture: RuleFixture, cluster: str, reason: str, model: str = "any") -> None:
    labels = {**WATCHER, "cluster": cluster, "gpu_namespace": "ml", "resource": GPU, "model": model, "reason": reason}
    fixture.add("gpugauge_pending_devices", labels, always(8))


def test_demand_beside_free_devices_is_reported_where_they_could_be_used(tmp_path):
    fixture = RuleFixture()
    for cluster, free, reason, model in (
        ("fragmented", 4, "fragmentation", "any"),
        ("full", 0, "insufficient_gpu", "any"),
        ("preempting", 4, "preempting", "any"),
        ("queued", 4, "queued", "any"),
        ("bound", 4, "image_pull", "any"),
        ("same-model", 4, "taint", "H100"),
        ("other-model", 4, "taint", "B200"),
        ("too-few", 7, "insufficient_gpu", "any"),
        ("enough", 8, "insufficient_gpu", "any"),
        ("too-few-of-the-model", 7, "insufficient_gpu", "H100"),
        ("enough-of-the-model", 8, "insufficient_gpu", "H100"),
        ("enough-of-another-model", 8, "insufficient_gpu", "B200"),
    ):
        _free(fixture, cluster, free)
        _pending(fixture, cluster, reason, model)
    _free(fixture, "cordoned", 4, schedulable=0)
    _pending(fixture, "cordoned", "node_unavailable")
    firing(fixture, "GPUPendingDemandWhileFree", 12, "cluster")
    found = ({"cluster": each} for each in ("fragmented", "same-model", "enough", "enough-of-the-model"))
    firing(fixture, "GPUPendingDemandWhileFree", 25, "cluster", *found)
    check(tmp_path, fixture)


def test_refused_work_queued_work_beside_free_devices_and_quotas_are_reported(tmp_path):
    fixture = RuleFixture()
    for namespace, reason in (("refused", "quota"), ("invalid", "admission_failed"), ("waits", "queued")):
        work = {**WATCHER, "gpu_namespace": namespace, "queue": "", "resource": GPU, "reason": reason, "cluster": "c"}
        fixture.add("gpugauge_pending_workloads", work, always(2))
    _free(fixture, "c", 2)
    _free(fixture, "full", 0)
    waits = {**WATCHER, "gpu_namespace": "x", "queue": "q", "resource": GPU, "reason": "queued", "cluster": "full"}
    fixture.add("gpugauge_pending_workloads", waits, always(2))
    for namespace, hard, used in (("ninety", 10, 9), ("eighty", 10, 8), ("none", 0, 0)):
        labels = {**WATCHER, "gpu_namespace": namespace, "resource": GPU}
        fixture.add("gpugauge_quota_hard", labels, always(hard))
        fixture.add("gpugauge_quota_used", labels, always(used))
    firing(fixture, "GPUWorkRefused", 20, "namespace")
    firing(fixture, "GPUWorkRefused", 35, "namespace", {"namespace": "refused"}, {"namespace": "invalid"})
    firing(fixture, "GPUAdmissionQueueStalled", 40, "cluster", {"cluster": "c"})
    firing(fixture, "GPUQuotaNearlyUsed", 20, "namespace", {"namespace": "ninety"})
    check(tmp_path, fixture)


def test_free_devices_that_no_pod_can_use_are_reported_after_two_hours(tmp_path):
    fixture = RuleFixture()
    labels = {**WATCHER, "node": "n1", "resource": GPU, "blocker": "cpu"}
    fixture.add("gpugauge_node_gpu_stranded", labels, "3x300")
    fixture.add("gpugauge_node_gpu_stranded", {**labels, "node": "n2"}, "0x300")
    firing(fixture, "GPUStranded", 110, "node")
    firing(fixture, "GPUStranded", 125, "node", {"node": "n1"})
    check(tmp_path, fixture)


def test_a_namespace_that_hardly_uses_many_devices_for_a_day_is_reported(tmp_path):
    """The recorded series of namespaces are given, and the alerts alone are evaluated: a day of them is much."""
    fixture = RuleFixture()
    for namespace, devices, busy in (("low", 8, 0.4), ("busy", 8, 4), ("small", 4, 0.2)):
        for name, value in (("devices:sum", devices), ("busy:sum", busy), ("busy:count", devices)):
            fixture.add(f"namespace:gpu_{name}", {"namespace": namespace}, f"{value}x3200")
        labels = {**WATCHER, "gpu_namespace": namespace, "resource": GPU}
        fixture.add("gpugauge_quota_hard", labels, "10x3200")
        fixture.add("gpugauge_quota_used", labels, f"{10 if namespace == 'low' else 5}x3200")
    for minute in (60, 1100):
        firing(fixture, "GPUNamespaceLowUtilization", minute, "namespace")
    firing(fixture, "GPUNamespaceLowUtilization", 1300, "namespace", {"namespace": "low"})
    firing(fixture, "GPUQuotaHoardedIdle", 250, "namespace")
    firing(fixture, "GPUQuotaHoardedIdle", 500, "namespace", {"namespace": "low"})
    groups = (capacity.GROUP,)
    path = write_test(tmp_path / "test.json", write_rules(tmp_path, groups), [fixture], groups, interval=300)
    assert run(path)[path] == ""
