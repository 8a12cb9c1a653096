"""GPUExporterDown and GPUWatcherDown: when they fire, and in which cases they do not."""

import pytest

from alerts import GROUPS
from alerts.rules.rule import QUICK_INTERVAL_SECONDS, RUNBOOK, Alert
from alerts.rules.rulefile import labels_of
from tests.alerts.fleet import always, stored
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

DOWN, WATCHER = "GPUExporterDown", "GPUWatcherDown"


def _node(fixture: RuleFixture, node: str, up: str, *, cluster: str = "", instance: str = "") -> None:
    labels = {"job": "gpugauge-node", "node": node, "instance": instance or f"{node}:9400", "cluster": cluster}
    fixture.add("up", {**labels, "pod": f"exporter-{instance}"}, up)


def _watcher(fixture: RuleFixture, up: str, *, number: int = 0, cluster: str = "") -> None:
    fixture.add("up", {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": cluster}, up)


def _exposes(fixture: RuleFixture, name: str, exposed: dict[str, str], values: str, *, honor: bool = True) -> None:
    target = {"job": "gpugauge-cluster", "instance": "watcher-0:9410", "namespace": "monitoring", "pod": "watcher-0"}
    fixture.add(name, stored(exposed, target, honor=honor), values)


def _firing(fixture: RuleFixture, alert: str, minute: float, by: str, *found: str) -> None:
    chosen = f'alertname="{alert}", alertstate="firing"'
    fixture.expect(f"count by ({by}) (ALERTS{{{chosen}}})", minute, *(({by: value}, 1.0) for value in found))


def _check(tmp_path, *fixtures: RuleFixture) -> None:
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), fixtures, interval=QUICK_INTERVAL_SECONDS)
    assert run(path)[path] == ""


def test_an_exporter_that_does_not_answer_for_10_minutes_is_reported_with_its_node(tmp_path):
    fixture = RuleFixture()
    _node(fixture, "node-1", "1x19 0x100")
    _node(fixture, "node-2", always(1))
    _node(fixture, "node-3", "1x19 0x9 1x100")
    for minute, found in ((15, ()), (19, ()), (21, ("node-1",)), (40, ("node-1",))):
        _firing(fixture, DOWN, minute, "node", *found)
    _check(tmp_path, fixture)


def test_a_new_pod_of_the_exporter_does_not_restart_the_alert(tmp_path):
    fixture = RuleFixture()
    _node(fixture, "node-1", "0x29 stale", instance="10.0.0.1:9400")
    _node(fixture, "node-1", "_x31 0x100", instance="10.0.0.2:9400")
    for minute in (12, 15, 16, 20):
        _firing(fixture, DOWN, minute, "node", "node-1")
    _check(tmp_path, fixture)


def test_one_of_two_exporters_on_a_node_is_enough(tmp_path):
    fixture = RuleFixture()
    _node(fixture, "node-1", always(0), instance="10.0.0.1:9400")
    _node(fixture, "node-1", always(1), instance="10.0.0.2:9400")
    _firing(fixture, DOWN, 30, "node")
    _check(tmp_path, fixture)


def test_a_node_with_gpus_and_without_a_target_is_reported_under_both_honor_labels(tmp_path):
    fixtures = []
    for honor in (True, False):
        fixture = RuleFixture()
        _node(fixture, "node-1", always(1))
        for node, devices in (("node-1", 8), ("node-2", 8), ("node-3", 0)):
            for resource in ("nvidia_com_gpu", "nvidia_com_mig_1g_10gb"):
                exposed = {"node": node, "resource": resource, "model": "NVIDIA-H100"}
                _exposes(fixture, "gpugauge_node_gpu_allocatable", exposed, always(devices), honor=honor)
        _firing(fixture, DOWN, 9, "node")
        _firing(fixture, DOWN, 12, "node", "node-2")
        fixtures.append(fixture)
    _check(tmp_path, *fixtures)


def test_a_node_whose_devices_dcgm_exporter_exposes_is_not_reported(tmp_path):
    fixture = RuleFixture()
    _exposes(fixture, "gpugauge_node_gpu_allocatable", {"node": "node-1", "resource": "nvidia_com_gpu"}, always(8))
    fixture.add(
        "DCGM_FI_DEV_GPU_UTIL", {"Hostname": "node-1", "UUID": "GPU-1", "gpu": "0", "modelName": "T4"}, always(5)
    )
    _firing(fixture, DOWN, 30, "node")
    fixture.expect(
        "gpugauge_device_info",
        30,
        (
            {
                "__name__": "gpugauge_device_info",
                "adapter": "dcgm-exporter",
                "node": "node-1",
                "UUID": "GPU-1",
                "gpu": "0",
                "model": "T4",
            },
            1.0,
        ),
    )
    _check(tmp_path, fixture)


def test_a_node_under_maintenance_is_not_reported(tmp_path):
    fixture = RuleFixture()
    _node(fixture, "node-1", always(0))
    for node in ("node-1", "node-2"):
        _exposes(fixture, "gpugauge_node_gpu_allocatable", {"node": node, "resource": "nvidia_com_gpu"}, always(8))
        _exposes(fixture, "gpugauge_node_maintenance", {"node": node, "reason": "driver_upgrade"}, always(1))
    _firing(fixture, DOWN, 30, "node")
    _check(tmp_path, fixture)


def test_a_watcher_that_does_not_answer_or_is_not_there_is_reported(tmp_path):
    silent, gone, never_there = RuleFixture(), RuleFixture(), RuleFixture()
    _watcher(silent, "1x19 0x100")
    for minute, found in ((15, ()), (19, ()), (21, ("",))):
        _firing(silent, WATCHER, minute, "severity", *("warning" for _ in found))
    _watcher(gone, "1x19 stale")
    _firing(gone, WATCHER, 19, "severity")
    _firing(gone, WATCHER, 21, "severity", "warning")
    _node(never_there, "node-1", always(1))
    _firing(never_there, WATCHER, 12, "severity", "warning")
    _check(tmp_path, silent, gone, never_there)


def test_one_of_two_replicas_is_enough_and_a_failover_is_not_reported(tmp_path):
    fixture = RuleFixture()
    _watcher(fixture, "1x39 0x100", number=0)
    _watcher(fixture, "0x38 1x100", number=1)
    for minute in (15, 25, 40):
        _firing(fixture, WATCHER, minute, "severity")
    _check(tmp_path, fixture)


def _leader(fixture: RuleFixture, values: str, *, number: int, cluster: str = "") -> None:
    target = {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": cluster}
    fixture.add("gpugauge_leader", target, values)


def test_two_replicas_of_which_none_leads_are_reported_and_a_failover_is_not(tmp_path):
    fixture = RuleFixture()
    for number, values in ((0, "1x19 stale"), (1, "0x20 1x20 0x100")):  # from minute 20.5 on nobody leads
        _watcher(fixture, "1x19 0x100" if number == 0 else always(1), number=number)
        _leader(fixture, values, number=number)
    for minute, found in ((15, ()), (20, ()), (30, ()), (32, ("warning",))):
        _firing(fixture, WATCHER, minute, "severity", *found)
    _check(tmp_path, fixture)


def test_a_standby_beside_a_watcher_without_a_lease_is_not_reported(tmp_path):
    fixture = RuleFixture()
    for number in (0, 1):
        _watcher(fixture, always(1), number=number)
    _leader(fixture, always(0), number=1)
    _exposes(fixture, "gpugauge_watch_last_sync_timestamp_seconds", {"object": "pods"}, always(1))
    for cluster in ("east", "west"):
        _watcher(fixture, always(1), cluster=cluster)
        _leader(fixture, always(1 if cluster == "east" else 0), number=0, cluster=cluster)
    _firing(fixture, WATCHER, 20, "cluster", "west")
    _check(tmp_path, fixture)


def test_each_cluster_is_reported_unless_it_has_its_own_watcher(tmp_path):
    fixture = RuleFixture()
    _watcher(fixture, always(1), cluster="east")
    _node(fixture, "node-1", always(1), cluster="east")
    _node(fixture, "node-1", always(1), cluster="west")
    _firing(fixture, WATCHER, 20, "cluster", "west")
    _check(tmp_path, fixture)


def test_a_cluster_without_gpugauge_or_gpus_is_not_reported(tmp_path):
    fixture = RuleFixture()
    fixture.add("up", {"job": "kubelet", "instance": "node-1:10250"}, always(1))
    for alert in (DOWN, WATCHER):
        _firing(fixture, alert, 30, "severity")
    _check(tmp_path, fixture)


def test_the_texts_name_node_and_cluster(tmp_path):
    fixture = RuleFixture()
    _node(fixture, "node-1", always(0), cluster="west")
    rules = {rule.name: rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)}
    down = {
        "summary": "The GPUs of node node-1 are not monitored.",
        "description": (
            "No GPU exporter on node node-1 has answered for 10 minutes: utilization, hardware errors and allocations "
            "of its GPUs are unknown."
        ),
        "runbook_url": f"{RUNBOOK}#gpuexporterdown",
        "dashboard_url": "/d/gpu-exporter?var-cluster=west",
    }
    fixture.expect_alerts(DOWN, 12, ({**labels_of(rules[DOWN]), "cluster": "west", "node": "node-1"}, down))
    watcher = {
        "summary": "No GPU watcher answers or leads in cluster west.",
        "description": (
            "No cluster watcher has answered, or led its replicas, for 10 minutes: pending reasons, owners, workload "
            "classes and exemptions of GPU pods are unknown, and alerts that depend on them do not fire."
        ),
        "runbook_url": f"{RUNBOOK}#gpuwatcherdown",
        "dashboard_url": "/d/gpu-exporter?var-cluster=west",
    }
    fixture.expect_alerts(WATCHER, 12, ({**labels_of(rules[WATCHER]), "cluster": "west"}, watcher))
    _check(tmp_path, fixture)


def test_gpus_without_the_label_that_tells_them_apart_are_reported_and_never_taken_for_one(tmp_path):
    """The label UUID is renamed by relabeling: of two GPUs one is idle and one busy."""
    fixture = RuleFixture()
    for job, name in (
        ("dcgm-exporter", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
        ("gpugauge-node", "gpugauge_allocation_busy_ratio"),
    ):
        target = {"job": job, "instance": f"{job}:9400", "node": f"node-{job}"}
        for pod, busy in (("a", 0), ("b", 0.95)):
            device = {**target, "gpuuuid": f"GPU-{pod}", "gpu": pod}
            ids = {"gpu_namespace": "team", "gpu_pod": pod}
            stock = {"exported_namespace": "team", "exported_pod": pod} if job == "dcgm-exporter" else ids
            fixture.add(name, {**device, **stock}, always(busy))
            if job == "dcgm-exporter":
                fixture.add("DCGM_FI_DEV_GPU_TEMP", {**device, **stock}, always(40))
            else:
                fixture.add("gpugauge_device_info", device, always(1))
                fixture.add("gpugauge_allocation_info", {**device, **ids}, always(1))
    _firing(fixture, "GPUDeviceLabelsMissing", 5, "job")
    _firing(fixture, "GPUDeviceLabelsMissing", 15, "job", "dcgm-exporter", "gpugauge-node")
    for recorded in ("pod:gpu_busy:ratio", "node:gpus:count", "node:gpu_busy:sum", "gpugauge_device_busy_ratio"):
        fixture.expect(recorded, 15)
    _check(tmp_path, fixture)
