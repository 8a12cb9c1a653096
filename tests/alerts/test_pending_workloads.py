"""Pending by workload: clocks, objectives, one alert for a full cluster, pods that are bound, and what would help."""

import pytest

from alerts import GROUPS
from alerts.rules.rule import Alert
from alerts.rules.rulefile import annotations_of, labels_of
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture, dashboard_of, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

WATCHER = {"job": "gpugauge-cluster", "instance": "watcher-0:9410"}
PENDING = "GPUWorkloadPending"
OVERRIDE = "global:gpugauge_threshold_override:value"


def workload(fixture: RuleFixture, namespace: str, name: str = "train", **more: str) -> None:
    """The clock of a workload, and one pod of it: `since` and `reason` samples, `pods` when the pod is exposed."""
    since, reason = more.get("since", always(0)), more.get("reason", "insufficient_gpu")
    pods, cluster = more.get("pods", always(1)), more.get("cluster", "")
    where = {**WATCHER, "cluster": cluster, "namespace": namespace, "gpu_namespace": namespace}
    owner = {"workload": name, "workload_type": "job"}
    clock = {**where, **owner, "resource": more.get("resource", "nvidia_com_gpu")}
    fixture.add("gpugauge_pending_workload_since_timestamp_seconds", clock, since)
    if pods:
        pod = {**where, **owner, "pod": f"{name}-0", "gpu_pod": f"{name}-0"}
        starts = since if "since" in more else pods.replace("1x", "0x")
        fixture.add("gpugauge_pending_pod_since_timestamp_seconds", {**pod, "resource": "nvidia_com_gpu"}, starts)
        fixture.add("gpugauge_pending_pod_reason", {**pod, "reason": reason}, pods)
        if priority := more.get("priority"):
            fixture.add("gpugauge_gpu_pod_info", {**pod, "priority_class": priority, "node": ""}, pods)


def firing(fixture: RuleFixture, alert: str, namespace: str, minute: float, *workloads: str) -> None:
    found = [{"workload": name, "workload_type": "job"} for name in sorted(workloads)]
    fixture.expect_firing(alert, namespace, minute, found)


def check(tmp_path, fixture: RuleFixture) -> None:
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


def test_the_clock_of_a_workload_goes_on_while_its_pods_are_made_anew(tmp_path):
    fixture = RuleFixture()
    where = {**WATCHER, "namespace": "16-made-anew", "gpu_namespace": "16-made-anew"}
    owner = {"workload": "train", "workload_type": "job"}
    clock = {**where, **owner, "resource": "nvidia_com_gpu"}
    fixture.add("gpugauge_pending_workload_since_timestamp_seconds", clock, always(0))
    for number in range(6):
        first = 20 * number
        pod = {**where, **owner, "pod": f"train-{number}", "gpu_pod": f"train-{number}"}
        lead = f"_x{first} " if first else ""
        name = "gpugauge_pending_pod_since_timestamp_seconds"
        fixture.add(name, {**pod, "resource": "nvidia_com_gpu"}, f"{lead}{first * 30}x17 stale")
        fixture.add("gpugauge_pending_pod_reason", {**pod, "reason": "admission_failed"}, f"{lead}1x17 stale")
    for minute in (10, 14):
        firing(fixture, PENDING, "16-made-anew", minute)
    for minute in (20, 30, 40, 50):
        firing(fixture, PENDING, "16-made-anew", minute, "train")
    check(tmp_path, fixture)


def test_an_outage_of_the_watcher_neither_ends_an_alert_nor_makes_one(tmp_path):
    fixture = RuleFixture()
    outage = "1x59 stale _x29 1x90"
    fixture.add("gpugauge_watch_last_sync_timestamp_seconds", {**WATCHER, "object": "pods"}, outage)
    zero = outage.replace("1x", "0x")
    workload(fixture, "14-pending", since=zero, pods=outage)
    workload(fixture, "14-starting", since=zero, pods=outage, reason="image_pull")
    for minute in (25, 29, 31, 35, 38, 40, 44, 46, 50, 60):
        firing(fixture, PENDING, "14-pending", minute, "train")
        firing(fixture, PENDING, "14-starting", minute)
    for minute in (40, 46, 60):
        firing(fixture, "GPUWorkloadStuckStarting", "14-starting", minute, "train")
    check(tmp_path, fixture)


def test_objectives_of_a_namespace_a_cluster_and_a_priority_class_replace_the_common_one(tmp_path):
    fixture = RuleFixture()
    for labels, value in (
        ({"namespace": "slow"}, "3600"),
        ({"namespace": "never"}, "1000000000"),
        ({"namespace": "quick", "cluster": "west"}, "300"),
        ({"priority_class": "batch"}, "3600"),
        ({}, "1200"),
    ):
        fixture.add(OVERRIDE, {"alert": PENDING, **labels}, always(value))
    workload(fixture, "slow")
    workload(fixture, "never")
    workload(fixture, "common")
    workload(fixture, "quick", cluster="west")
    workload(fixture, "of-class", priority="batch")
    rows = {"slow": 64, "never": 1000, "common": 23, "quick": 8, "of-class": 64}
    for namespace, first in rows.items():
        for minute in (4, 10, 18, 25, 50, 70):
            firing(fixture, PENDING, namespace, minute, *(["train"] if minute >= first else []))
    check(tmp_path, fixture)


def test_many_workloads_that_wait_for_a_full_resource_are_one_alert_and_a_few_are_one_each(tmp_path):
    fixture = RuleFixture()
    node = {**WATCHER, "node": "n1", "model": "H100"}
    for cluster, free in (("full", 0), ("with-free", 1)):
        fixture.add("gpugauge_node_gpu_schedulable", {**WATCHER, "node": "n1", "cluster": cluster}, always(1))
        for resource in ("nvidia_com_gpu", "nvidia_com_mig_1g_10gb"):
            labels = {**node, "cluster": cluster, "resource": resource}
            fixture.add("gpugauge_node_gpu_free", labels, always(free))
        for number in range(12):
            workload(fixture, f"19-{cluster}", f"w{number}", cluster=cluster)
    workload(fixture, "few", resource="nvidia_com_mig_1g_10gb", cluster="full")
    workload(fixture, "other-reason", reason="volume", cluster="full")
    workload(fixture, "own-objective", cluster="full")
    fixture.add(OVERRIDE, {"alert": PENDING, "namespace": "own-objective"}, always(600))
    for minute in (20, 40):
        firing(fixture, PENDING, "19-full", minute)
        firing(fixture, PENDING, "19-with-free", minute, *(f"w{number}" for number in range(12)))
        for namespace in ("few", "other-reason", "own-objective"):
            firing(fixture, PENDING, namespace, minute, "train")
        chosen = 'alertname="GPUClusterSaturated", alertstate="firing"'
        found = ({"cluster": "full", "resource": "nvidia_com_gpu"}, 1.0)
        fixture.expect(f"count by (cluster, resource) (ALERTS{{{chosen}}})", minute, found)
    check(tmp_path, fixture)


def test_a_bound_pod_that_does_not_run_is_stuck_and_not_pending_for_lack_of_gpus(tmp_path):
    fixture = RuleFixture()
    workload(fixture, "bound", reason="image_pull")
    for minute in (10, 20, 30, 40, 60):
        firing(fixture, PENDING, "bound", minute)
        firing(fixture, "GPUWorkloadStuckStarting", "bound", minute, *(["train"] if minute > 30 else []))
    workload(fixture, "unbound")
    firing(fixture, "GPUWorkloadStuckStarting", "unbound", 60)
    workload(fixture, "impossible", reason="unsatisfiable_size")
    firing(fixture, "GPUWorkloadUnsatisfiable", "impossible", 4)
    firing(fixture, "GPUWorkloadUnsatisfiable", "impossible", 8, "train")
    firing(fixture, "GPUWorkloadUnsatisfiable", "unbound", 40)
    check(tmp_path, fixture)


def test_workloads_without_series_of_their_pods_count_where_there_are_such_and_are_reported(tmp_path):
    fixture = RuleFixture()
    for cluster, untracked in (("many", 7), ("few", 0)):
        fixture.add("gpugauge_pending_workloads_untracked", {**WATCHER, "cluster": cluster}, always(untracked))
        workload(fixture, f"17-{cluster}", "hidden", pods="", cluster=cluster)
    firing(fixture, PENDING, "17-many", 20, "hidden")
    fixture.expect(
        'count by (cluster) (ALERTS{alertname="GPUPendingWorkloadsUntracked"})', 20, ({"cluster": "many"}, 1.0)
    )
    check(tmp_path, fixture)


def test_two_watchers_that_differ_on_the_owner_make_one_alert(tmp_path):
    fixture = RuleFixture()
    ids = {"namespace": "25-two-watchers", "gpu_namespace": "25-two-watchers", "pod": "p", "gpu_pod": "p"}
    for number, owner in enumerate(("old", "new")):
        labels = {**ids, "workload": owner, "workload_type": "job", "instance": f"watcher-{number}", "job": "w"}
        fixture.add("gpugauge_pending_pod_since_timestamp_seconds", {**labels, "resource": "r"}, always(0))
        fixture.add("gpugauge_pending_pod_reason", {**labels, "reason": "taint"}, always(1))
    fixture.expect('count(ALERTS{alertname="GPUWorkloadPending", alertstate="firing"})', 20, ({}, 1.0))
    check(tmp_path, fixture)


def test_the_text_names_idle_devices_of_the_wanted_model_who_has_them_and_what_is_stranded(tmp_path):
    fixture = RuleFixture()
    workload(fixture, "team-a")
    wanted = {**WATCHER, "namespace": "team-a", "gpu_namespace": "team-a", "reason": "insufficient_gpu"}
    fixture.add("gpugauge_pending_pods", {**wanted, "resource": "nvidia_com_gpu", "model": "H100"}, always(1))
    stranded = {**WATCHER, "node": "n9", "resource": "nvidia_com_gpu", "blocker": "cpu"}
    fixture.add("gpugauge_node_gpu_stranded", stranded, always(3))
    rows = (("a", "H100", 8), ("b", "H100", 4), ("c", "H100", 2), ("d", "H100", 1), ("e", "A100", 16))
    for name, model, idle in rows:
        for device in range(idle):
            node = f"node-{name}"
            uuid = {"UUID": f"GPU-{name}-{device}", "node": node, "job": "gpugauge-node"}
            pod = {"gpu_namespace": "ml", "gpu_pod": name}
            fixture.add("gpugauge_device_info", {**uuid, "model": model}, always(1))
            fixture.add("gpugauge_allocation_info", {**uuid, **pod, "resource": "nvidia_com_gpu"}, always(1))
            fixture.add("gpugauge_allocation_busy_ratio", {**uuid, **pod}, always(0))
    alert = next(rule for group in GROUPS for rule in group.rules if rule.name == PENDING)
    assert isinstance(alert, Alert)
    labels = {**labels_of(alert), "namespace": "team-a", "workload": "train", "workload_type": "job"}
    text = {
        **annotations_of(alert),
        "summary": "job team-a/train has been pending for 25 minutes.",
        "description": (
            "1 GPU pods of job team-a/train could be scheduled and do not run. The oldest, train-0, is pending: "
            "insufficient_gpu. All: 1 insufficient_gpu. The workload has been pending for 25 minutes. Allocated and "
            "idle are 15 of the devices that it could use, most of them of ml/a (8), ml/b (4), ml/c (2). Free and of "
            "no use are 3: their node lacks cpu."
        ),
        "reason": "insufficient_gpu",
        "pods": "1",
        "dashboard_url": dashboard_of(alert, labels),
    }
    fixture.expect_alerts(PENDING, 25, (labels, text))
    check(tmp_path, fixture)
