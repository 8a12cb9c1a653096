"""Pending GPU pods by kube-state-metrics alone, where no cluster watcher is."""

import pytest

from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

UNSCHEDULABLE = {"kube_pod_status_unschedulable": always(1)}


def pod(fixture: RuleFixture, name: str, **more: object) -> None:
    """A pod in a namespace of its own; `states` are further series, `until` when kube-state-metrics ends."""
    states = more.get("states", UNSCHEDULABLE)
    assert isinstance(states, dict)
    for replica in range(int(str(more.get("replicas", 1)))):
        labels = {"namespace": name, "pod": "p", "job": "kube-state-metrics", "instance": f"ksm-{replica}:8080"}
        samples = str(more.get("until", always(1)))
        for phase in ("Pending", "Running"):
            value = str(int(phase == more.get("phase", "Pending")))
            fixture.add("kube_pod_status_phase", {**labels, "phase": phase}, samples.replace("1x", f"{value}x"))
        fixture.add("kube_pod_created", labels, samples.replace("1x", "0x"))
        request = {**labels, "container": "main", "resource": str(more.get("resource", "nvidia_com_gpu"))}
        kind = "init_container" if more.get("init") else "container"
        fixture.add(f"kube_pod_{kind}_resource_requests", request, samples)
        if owner := more.get("owner"):
            kind, controller = str(owner).split("/")
            of = {"owner_kind": kind, "owner_name": controller, "owner_is_controller": "true"}
            fixture.add("kube_pod_owner", {**labels, **of}, samples)
        for series, values in states.items():
            metric, _, label = series.partition("/")
            state = dict([label.split("=")]) if label else {}
            fixture.add(metric, {**labels, **state}, values)


ROWS: dict[str, tuple[dict[str, object], dict[float, str]]] = {
    "unschedulable": ({}, {10: "", 25: "p pod"}),
    "cpu-only": ({"resource": "cpu"}, {25: ""}),
    "gated": ({"states": {**UNSCHEDULABLE, "kube_pod_status_reason/reason=SchedulingGated": always(1)}}, {25: ""}),
    "running": ({"phase": "Running", "states": {}}, {25: ""}),
    "bound": ({"states": {"kube_pod_status_scheduled/condition=true": always(1)}}, {25: "", 40: ""}),
    "never-tried": ({"states": {}}, {10: "", 25: "p pod"}),
    "mig": ({"resource": "nvidia_com_mig_1g_10gb"}, {25: "p pod"}),
    "shared": ({"resource": "nvidia_com_gpu_shared"}, {25: "p pod"}),
    "terminating": ({"states": {**UNSCHEDULABLE, "kube_pod_deletion_timestamp": always(600)}}, {25: ""}),
    "two-replicas": ({"replicas": 2}, {25: "p pod"}),
    "state-metrics-gone": ({"until": "1x43 stale"}, {20: "p pod", 35: ""}),
    "init-container": ({"init": True}, {25: "p pod"}),
    "of-a-job": ({"owner": "Job/train"}, {25: "train job"}),
    "of-a-deployment": ({"owner": "ReplicaSet/web-7d4b9c6f5d"}, {25: "web deployment"}),
}


def test_every_row_of_the_matrix_holds_with_kube_state_metrics_alone(tmp_path):
    fixture = RuleFixture()
    for name, (more, firing) in ROWS.items():
        pod(fixture, name, **more)
        for minute, owner in firing.items():
            found = [dict(zip(("workload", "workload_type"), owner.split(), strict=True))] if owner else []
            fixture.expect_firing("GPUWorkloadPending", name, minute, found)
    for minute, found in ((30, []), (40, [{"workload": "p", "workload_type": "pod"}])):
        fixture.expect_firing("GPUWorkloadStuckStarting", "bound", minute, found)
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


def test_where_a_watcher_is_its_pods_alone_count(tmp_path):
    fixture = RuleFixture()
    fixture.add("gpugauge_pending_workloads_untracked", {"job": "gpugauge-cluster"}, always(0))
    pod(fixture, "known-to-the-watcher-as-gated")
    fixture.expect("ALERTS", 25)
    fixture.expect("gpugauge_pending_pod_since_timestamp_seconds", 25)
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    report = run(path)[path]
    assert "GPUWorkloadPending" not in report
    assert "gpugauge_pending_pod_since" not in report
