"""GPUExporterDown and GPUWatcherDown: when they fire, and in which cases they do not."""

import pytest

from alerts import GROUPS
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import NOW, check, firing, node_target, on_watcher, texts, watcher_target

pytestmark = pytest.mark.prometheus

DOWN, WATCHER = "GPUExporterDown", "GPUWatcherDown"


def test_an_exporter_that_does_not_answer_for_10_minutes_is_reported_with_its_node(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", "1x19 0x100")
    node_target(fixture, "node-2", always(1))
    node_target(fixture, "node-3", "1x19 0x9 1x100")
    for minute, found in ((15, ()), (19, ()), (21, ("node-1",)), (40, ("node-1",))):
        firing(fixture, DOWN, minute, "node", *found)
    check(tmp_path, fixture)


def test_a_new_pod_of_the_exporter_does_not_restart_the_alert(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", "0x29 stale", instance="10.0.0.1:9400")
    node_target(fixture, "node-1", "_x31 0x100", instance="10.0.0.2:9400")
    for minute in (12, 15, 16, 20):
        firing(fixture, DOWN, minute, "node", "node-1")
    check(tmp_path, fixture)


def test_one_of_two_exporters_on_a_node_is_enough(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", always(0), instance="10.0.0.1:9400")
    node_target(fixture, "node-1", always(1), instance="10.0.0.2:9400")
    firing(fixture, DOWN, 30, "node")
    check(tmp_path, fixture)


def test_a_node_with_gpus_and_without_a_target_is_reported_under_both_honor_labels(tmp_path):
    fixtures = []
    for honor in (True, False):
        fixture = RuleFixture()
        node_target(fixture, "node-1", always(1))
        for node, devices in (("node-1", 8), ("node-2", 8), ("node-3", 0)):
            for resource in ("nvidia_com_gpu", "nvidia_com_mig_1g_10gb"):
                exposed = {"node": node, "resource": resource, "model": "NVIDIA-H100"}
                on_watcher(fixture, "gpugauge_node_gpu_allocatable", exposed, always(devices), honor=honor)
        firing(fixture, DOWN, 9, "node")
        firing(fixture, DOWN, 12, "node", "node-2")
        fixtures.append(fixture)
    check(tmp_path, *fixtures)


def test_a_node_whose_devices_dcgm_exporter_exposes_is_not_reported(tmp_path):
    fixture = RuleFixture()
    on_watcher(fixture, "gpugauge_node_gpu_allocatable", {"node": "node-1", "resource": "nvidia_com_gpu"}, always(8))
    fixture.add(
        "DCGM_FI_DEV_GPU_UTIL", {"Hostname": "node-1", "UUID": "GPU-1", "gpu": "0", "modelName": "T4"}, always(5)
    )
    firing(fixture, DOWN, 30, "node")
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
    check(tmp_path, fixture, groups=GROUPS)


def test_a_node_under_maintenance_is_not_reported(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", always(0))
    for node in ("node-1", "node-2"):
        on_watcher(fixture, "gpugauge_node_gpu_allocatable", {"node": node, "resource": "nvidia_com_gpu"}, always(8))
        on_watcher(fixture, "gpugauge_node_maintenance", {"node": node, "reason": "driver_upgrade"}, always(1))
    firing(fixture, DOWN, 30, "node")
    check(tmp_path, fixture)


def test_a_watcher_that_does_not_answer_or_is_not_there_is_reported(tmp_path):
    silent, gone, never_there = RuleFixture(), RuleFixture(), RuleFixture()
    watcher_target(silent, "1x19 0x100")
    for minute, found in ((15, ()), (19, ()), (21, ("",))):
        firing(silent, WATCHER, minute, "severity", *("warning" for _ in found))
    watcher_target(gone, "1x19 stale")
    firing(gone, WATCHER, 19, "severity")
    firing(gone, WATCHER, 21, "severity", "warning")
    node_target(never_there, "node-1", always(1))
    firing(never_there, WATCHER, 12, "severity", "warning")
    check(tmp_path, silent, gone, never_there)


def test_one_of_two_replicas_is_enough_and_a_failover_is_not_reported(tmp_path):
    fixture = RuleFixture()
    watcher_target(fixture, "1x39 0x100", number=0)
    watcher_target(fixture, "0x38 1x100", number=1)
    for minute in (15, 25, 40):
        firing(fixture, WATCHER, minute, "severity")
    check(tmp_path, fixture)


def _leader(fixture: RuleFixture, values: str, *, number: int, cluster: str = "") -> None:
    target = {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": cluster}
    fixture.add("gpugauge_leader", target, values)


def test_two_replicas_of_which_none_leads_are_reported_and_a_failover_is_not(tmp_path):
    fixture = RuleFixture()
    for number, values in ((0, "1x19 stale"), (1, "0x20 1x20 0x100")):  # from minute 20.5 on nobody leads
        watcher_target(fixture, "1x19 0x100" if number == 0 else always(1), number=number)
        _leader(fixture, values, number=number)
    for minute, found in ((15, ()), (20, ()), (30, ()), (32, ("warning",))):
        firing(fixture, WATCHER, minute, "severity", *found)
    check(tmp_path, fixture)


def test_a_standby_beside_a_watcher_without_a_lease_is_not_reported(tmp_path):
    fixture = RuleFixture()
    for number in (0, 1):
        watcher_target(fixture, always(1), number=number)
    _leader(fixture, always(0), number=1)
    on_watcher(fixture, "gpugauge_watch_last_sync_timestamp_seconds", {"object": "pods"}, NOW)
    for cluster in ("east", "west"):
        watcher_target(fixture, always(1), cluster=cluster)
        _leader(fixture, always(1 if cluster == "east" else 0), number=0, cluster=cluster)
    firing(fixture, WATCHER, 20, "cluster", "west")
    check(tmp_path, fixture)


def test_each_cluster_is_reported_unless_it_has_its_ownwatcher_target(tmp_path):
    fixture = RuleFixture()
    watcher_target(fixture, always(1), cluster="east")
    node_target(fixture, "node-1", always(1), cluster="east")
    node_target(fixture, "node-1", always(1), cluster="west")
    firing(fixture, WATCHER, 20, "cluster", "west")
    check(tmp_path, fixture)


def test_a_cluster_without_gpugauge_or_gpus_is_not_reported(tmp_path):
    fixture = RuleFixture()
    fixture.add("up", {"job": "kubelet", "instance": "node-1:10250"}, always(1))
    for alert in (DOWN, WATCHER):
        firing(fixture, alert, 30, "severity")
    check(tmp_path, fixture)


def test_the_texts_name_node_and_cluster(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", always(0), cluster="west")
    texts(
        fixture,
        DOWN,
        12,
        {"cluster": "west", "node": "node-1"},
        "The GPU exporter of node node-1 does not answer.",
        "The GPU exporter of node node-1 has answered 0 % of the scrapes of the last 10 minutes, or is no scrape "
        "target. Utilization, hardware errors and allocations of its GPUs are unknown.",
    )
    texts(
        fixture,
        WATCHER,
        12,
        {"cluster": "west"},
        "No GPU watcher answers or leads in cluster west.",
        "For 10 minutes no cluster watcher has answered most of its scrapes, led its replicas, and heard from the API "
        "server: pending reasons, owners, workload classes and exemptions of GPU pods are unknown or old, and alerts "
        "that depend on them do not fire.",
    )
    check(tmp_path, fixture)


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
    firing(fixture, "GPUDeviceLabelsMissing", 5, "job")
    firing(fixture, "GPUDeviceLabelsMissing", 15, "job", "dcgm-exporter", "gpugauge-node")
    for recorded in ("pod:gpu_busy:ratio", "node:gpus:count", "node:gpu_busy:sum", "gpugauge_device_busy_ratio"):
        fixture.expect(recorded, 15)
    check(tmp_path, fixture, groups=GROUPS)
