"""Situations in which exporters and watchers were found to be down or misread, and what must be reported then."""

import pytest

from alerts.adapters import dcgm_exporter
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import EXPORTERS, check, firing, node_target, on_node, on_watcher, texts, watcher_target

pytestmark = pytest.mark.prometheus

DOWN, BLIND, WATCHER, DISAGREE = "GPUExporterDown", "GPUFleetBlind", "GPUWatcherDown", "GPUClusterLabelsDisagree"


def cycle(pattern: str, times: int = 40) -> str:
    return " ".join([pattern] * times)


def test_f1_crash_loop_is_down_and_what_answers_most_scrapes_is_not(tmp_path):
    fixture = RuleFixture()
    for name, up in {
        "crash-loop": cycle("1 0x3"),
        "answers-1-scrape-of-10": cycle("1 0x8", 20),
        "every-second-scrape-lost": cycle("1 0"),
        "two-of-three-answered": cycle("1 1 0"),
        "down-for-4-minutes": "1x39 0x7 1x100",
    }.items():
        node_target(fixture, name, up)
    for minute in (20, 25, 30, 45, 55):
        firing(fixture, DOWN, minute, "node", "crash-loop", "answers-1-scrape-of-10")
    check(tmp_path, fixture)


def test_f1_watcher_crash_loops_is_down_and_a_rolling_update_is_not(tmp_path):
    loops, updated = RuleFixture(), RuleFixture()
    watcher_target(loops, cycle("1 0x3"))
    watcher_target(updated, "1x39 stale", number=0)
    watcher_target(updated, "_x36 0x5 1x100", number=1)
    for minute in (20, 30, 45):
        firing(loops, WATCHER, minute, "severity", "warning")
        firing(updated, WATCHER, minute, "severity")
    check(tmp_path, loops, updated)


def test_f8_a_watcher_whose_watch_is_stale_or_whose_source_is_down_is_reported(tmp_path):
    stale, late, standby = RuleFixture(), RuleFixture(), RuleFixture()
    for fixture, nodes in ((stale, "0+30x39 1170x100"), (late, "0+30x39 1170x8 1500+30x100")):
        watcher_target(fixture, always(1))
        for kind, values in (("pods", "0+30x200"), ("nodes", nodes)):
            on_watcher(fixture, "gpugauge_watch_last_sync_timestamp_seconds", {"object": kind}, values)
    for minute, found in ((20, ()), (28, ()), (30, ("warning",)), (50, ("warning",))):
        firing(stale, WATCHER, minute, "severity", *found)
        firing(late, WATCHER, minute, "severity")
    for number in (0, 1):
        watcher_target(standby, always(1), number=number)
    on_watcher(standby, "gpugauge_watch_last_sync_timestamp_seconds", {"object": "nodes"}, "0+30x200")
    firing(standby, WATCHER, 40, "severity")
    check(tmp_path, stale, late, standby)


def test_f10_components_are_known_by_their_own_series(tmp_path):
    """An exporter in the operator's DaemonSet, whose target has no node, and a watcher found by an annotation."""
    fixture = RuleFixture()
    target = {"job": "nvidia-dcgm-exporter", "instance": "10.0.0.1:9400", "pod": "nvidia-dcgm-exporter-x7"}
    fixture.add("up", target, "1x39 0x100")
    fixture.add("gpugauge_build_info", {**target, "node": "node-1", "source": "dcgm"}, "1x39 stale")
    renamed = {"job": "kubernetes-pods", "instance": "10.0.0.9:9410", "node": "node-7"}
    fixture.add("up", renamed, always(1))
    fixture.add("gpugauge_build_info", {**renamed, "version": "1"}, always(1))
    fixture.add("gpugauge_watch_last_sync_timestamp_seconds", {**renamed, "object": "pods"}, "0+30x200")
    fixture.add("up", {"job": "foreign", "instance": "10.0.0.1:80"}, always(0))
    for minute, found in ((20, ()), (31, ("node-1",)), (50, ("node-1",))):
        firing(fixture, DOWN, minute, "node", *found)
        firing(fixture, WATCHER, minute, "severity")
    check(tmp_path, fixture)


def test_f11_targets_without_the_label_node_are_reported_one_by_one_and_once(tmp_path):
    named, unnamed = RuleFixture(), RuleFixture()
    for number in range(5):
        target = {"job": "gpugauge-node", "instance": f"10.0.0.{number}:9400"}
        up = "1x19 0x100" if number == 3 else always(1)
        for fixture in (named, unnamed):
            fixture.add("up", target, up)
        device = {**target, "node": f"node-{number}", "UUID": f"GPU-{number}"}
        for name in ("gpugauge_device_info", "gpugauge_devices_observed"):
            named.add(name, device, "1x19 stale" if number == 3 else always(1))
        offered = {"node": f"node-{number}", "resource": "nvidia_com_gpu", "model": "NVIDIA-H100"}
        on_watcher(named, "gpugauge_node_gpu_allocatable", offered, always(8))
    named.expect(f'count by (node, instance) (ALERTS{{alertname="{DOWN}"}})', 30, ({"node": "node-3"}, 1.0))
    firing(unnamed, DOWN, 30, "instance", "10.0.0.3:9400")
    for fixture in (named, unnamed):
        firing(fixture, BLIND, 30, "severity")
    check(tmp_path, named, unnamed)


def test_f20_a_cordon_silences_nothing_and_maintenance_does(tmp_path):
    fixture = RuleFixture()
    for reason in ("cordon", "driver_upgrade", "mig_reconfig", "scale_down", "planned"):
        node_target(fixture, f"node-{reason}", always(0))
        on_watcher(fixture, "gpugauge_node_maintenance", {"node": f"node-{reason}", "reason": reason}, always(1))
    firing(fixture, DOWN, 30, "node", "node-cordon")
    check(tmp_path, fixture)


def test_f21_the_text_does_not_call_gpus_unknown_that_dcgm_exporter_still_exposes(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", always(0))
    stock = {"job": "nvidia-dcgm-exporter", "instance": "10.0.0.1:9400", "Hostname": "node-1", "UUID": "GPU-1"}
    fixture.add("DCGM_FI_DEV_GPU_TEMP", {**stock, "gpu": "0", "modelName": "T4"}, always(40))
    texts(
        fixture,
        DOWN,
        20,
        {"node": "node-1"},
        "The GPU exporter of node node-1 does not answer.",
        "The GPU exporter of node node-1 has answered 0 % of the scrapes of the last 10 minutes, or is no scrape "
        "target. Its GPUs are still exposed by dcgm-exporter.",
    )
    check(tmp_path, fixture, groups=(dcgm_exporter.GROUP, *EXPORTERS))


@pytest.mark.parametrize(
    ("down", "of", "blind"),
    [(40, 40, True), (3, 10, True), (2, 9, True), (2, 10, False), (1, 3, False), (0, 5, False)],
)
def test_f22_more_than_a_fifth_of_the_exporters_down_is_one_page(tmp_path, down, of, blind):
    fixture = RuleFixture()
    for number in range(of):
        node_target(fixture, f"node-{number}", "1x19 0x100" if number < down else always(1), cluster="west")
    node_target(fixture, "node-0", always(1), cluster="east")
    firing(fixture, BLIND, 14, "cluster")
    firing(fixture, BLIND, 25, "cluster", *(["west"] if blind else []))
    fixture.expect(f'count(ALERTS{{alertname="{BLIND}", notify="page"}})', 25, *([({}, 1.0)] if blind else []))
    check(tmp_path, fixture)


def test_f23_a_cluster_label_on_one_job_only_is_reported(tmp_path):
    one_job, other_value, right = RuleFixture(), RuleFixture(), RuleFixture()
    for fixture, exporter, watcher in ((one_job, "west", ""), (other_value, "west", "west1"), (right, "west", "west")):
        node_target(fixture, "node-1", always(1), cluster=exporter)
        watcher_target(fixture, always(1), cluster=watcher)
        on_node(fixture, "gpugauge_device_info", {"node": "node-1", "UUID": "GPU-1"}, always(1), cluster=exporter)
        on_watcher(fixture, "gpugauge_node_info", {"node": "node-1"}, always(1), cluster=watcher)
    one_job.expect(
        f'count by (job) (ALERTS{{alertname="{DISAGREE}"}}) > 0',
        5,
        ({"job": "gpugauge-node"}, 1.0),
        ({"job": "gpugauge-cluster"}, 1.0),
    )
    firing(other_value, DISAGREE, 20, "cluster", "west")
    firing(right, DISAGREE, 20, "cluster")
    check(tmp_path, one_job, other_value, right)


def test_f28_a_node_whose_exporter_is_gone_is_reported_and_one_that_is_removed_is_not(tmp_path):
    """Also a node whose GPUs go to virtual machines: no exporter need run there."""
    fixture = RuleFixture()
    for node, resource, values in (
        ("gone", "nvidia_com_gpu", always(8)),
        ("leaves", "nvidia_com_gpu", "8x39 stale"),
        ("virtual-machines", "nvidia_com_GA102GL_A10", always(8)),
    ):
        on_watcher(fixture, "gpugauge_node_gpu_allocatable", {"node": node, "resource": resource}, values)
        node_target(fixture, node, "_x200" if node == "virtual-machines" else "1x39 stale")
    for minute, found in ((25, ()), (40, ("gone",)), (60, ("gone",))):
        firing(fixture, DOWN, minute, "node", *found)
    check(tmp_path, fixture)


def test_f29_after_an_uninstall_the_missing_watcher_is_reported_for_an_hour_at_most(tmp_path):
    fixture = RuleFixture()
    node_target(fixture, "node-1", "1x19 stale")
    watcher_target(fixture, "1x19 stale")
    for minute, found in ((30, ("warning",)), (60, ("warning",)), (80, ())):
        firing(fixture, WATCHER, minute, "severity", *found)
    check(tmp_path, fixture)


def test_the_watchdog_fires_from_the_start_with_severity_none(tmp_path):
    fixture = RuleFixture()
    fixture.add("up", {"job": "kubelet"}, always(1))
    firing(fixture, "GPUAlertingWatchdog", 0, "severity", "none")
    firing(fixture, "GPUAlertingWatchdog", 60, "severity", "none")
    check(tmp_path, fixture)
