"""Alerts on data that other alerts need: profiling fields, series of pods, and scrapes in time; at their boundaries."""

import pytest

from alerts.alerting import missing_data
from alerts.recorded import exporters
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import check, firing, node_target, on_node, on_watcher, texts

pytestmark = pytest.mark.prometheus

GROUPS = (exporters.GROUP, missing_data.GROUP)
PROFILING, DEPENDENCY, SLOW = "GPUProfilingMetricsMissing", "GPUMonitoringDependencyMissing", "GPUExporterSlow"
TENSOR = "gpugauge_device_tensor_active_ratio"
PROBLEM = "gpugauge_source_problem"


def _node(fixture: RuleFixture, node: str, *, cluster: str = "c", **labels: str) -> None:
    gpu = {"node": node, "UUID": f"GPU-{node}", **labels}
    on_node(fixture, "gpugauge_gpu_temperature_celsius", gpu, "50x119 stale", cluster=cluster)


def test_a_node_that_lacks_the_profiling_fields_that_others_have_is_reported(tmp_path):
    fixture = RuleFixture()
    for node in ("tensor", "memory", "multiprocessors", "missing", "unsupported", "paused", "all-supported"):
        _node(fixture, node)
    for node, kind in (("tensor", "tensor"), ("memory", "dram"), ("multiprocessors", "sm")):
        active = f"gpugauge_device_{kind}_active_ratio"
        on_node(fixture, active, {"node": node, "UUID": f"GPU-{node}"}, always(0), cluster="c")
    for node, devices in (("unsupported", 1), ("all-supported", 0)):
        field = {"node": node, "field": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "reason": "not_supported"}
        on_node(fixture, "gpugauge_field_unsupported_devices", field, always(devices), cluster="c")
    other = {"node": "missing", "field": "DCGM_FI_DEV_FAN_SPEED", "reason": "not_supported"}
    on_node(fixture, "gpugauge_field_unsupported_devices", other, always(1), cluster="c")
    paused = {"node": "paused", "source": "dcgm", "reason": "profiling_paused_by_file"}
    on_node(fixture, PROBLEM, paused, always(1), cluster="c")
    _node(fixture, "not-configured", cluster="without")
    _node(fixture, "stock", adapter="dcgm-exporter")
    firing(fixture, PROFILING, 29, "node")
    firing(fixture, PROFILING, 31, "node", "missing", "all-supported")
    firing(fixture, PROFILING, 74, "node", "missing", "all-supported")
    firing(fixture, PROFILING, 77, "node")
    check(tmp_path, fixture, groups=GROUPS)


@pytest.mark.parametrize("kind", ["tensor", "dram", "sm"])
def test_any_profiling_field_of_another_node_shows_that_they_are_read(tmp_path, kind):
    fixture = RuleFixture()
    _node(fixture, "missing")
    on_node(fixture, f"gpugauge_device_{kind}_active_ratio", {"node": "n", "UUID": "GPU-1"}, always(0), cluster="c")
    firing(fixture, PROFILING, 31, "node", "missing")
    check(tmp_path, fixture, groups=GROUPS)


def test_what_the_engine_says_of_profiling_is_reported_unless_it_is_meant(tmp_path):
    fixture = RuleFixture()
    for node, *reasons in (
        ("in-use", "profiling_in_use"),
        ("module", "profiling_module_not_loaded"),
        ("none", "profiling_not_supported"),
        ("some-left-out", "profiling_multi_pass"),
        ("by-file", "profiling_paused", "profiling_paused_by_file"),
    ):
        for reason in reasons:
            on_node(fixture, PROBLEM, {"node": node, "source": "dcgm", "reason": reason}, always(1))
        on_node(fixture, TENSOR, {"node": node, "UUID": f"GPU-{node}"}, always(0))
    firing(fixture, PROFILING, 31, "node", "in-use", "module")
    check(tmp_path, fixture, groups=GROUPS)


def _allocated(fixture: RuleFixture, cluster: str, values: str, **labels: str) -> None:
    gpu = {"node": f"node-{cluster}", "UUID": "GPU-1", **labels}
    on_node(fixture, "gpugauge_device_allocated_pods", gpu, values, cluster=cluster)


def test_allocated_gpus_without_series_of_pods_are_one_alert_for_each_kind(tmp_path):
    fixture = RuleFixture()
    pod = {"gpu_namespace": "ml", "gpu_pod": "p"}
    start, phase = "gpugauge_gpu_pod_start_timestamp_seconds", "gpugauge_gpu_pod_phase"
    for cluster in ("watched", "adapter", "neither", "without-phases", "without-starts"):
        _allocated(fixture, cluster, "1x119 stale")
    for cluster, *names in (
        ("watched", start, phase),
        ("adapter", start, phase),
        ("without-phases", start),
        ("without-starts", phase),
    ):
        adapter = {"adapter": "kube-state-metrics"} if cluster == "adapter" else {}
        for name in names:
            on_watcher(fixture, name, {**pod, **adapter}, always(1), cluster=cluster)
    _allocated(fixture, "unallocated", always(0))
    _allocated(fixture, "stock", always(1), adapter="dcgm-exporter")
    firing(fixture, DEPENDENCY, 14, "cluster")
    for minute in (16, 70):
        for problem, found in (("no_start_times", "without-starts"), ("no_phases", "without-phases")):
            expected = [({"cluster": each}, 1.0) for each in ("neither", found)]
            chosen = f'alertname="{DEPENDENCY}", alertstate="firing", problem="{problem}"'
            fixture.expect(f"count by (cluster) (ALERTS{{{chosen}}})", minute, *expected)
    firing(fixture, DEPENDENCY, 77, "cluster")
    check(tmp_path, fixture, groups=GROUPS)


def test_an_exporter_that_takes_more_than_eight_seconds_is_slow(tmp_path):
    fixture = RuleFixture()
    for node, scrape, read in (
        ("scrape", "9x119 1x100", always(1)),
        ("read", always(1), always(9)),
        ("just-in-time", always(8), always(8)),
        ("once", "1x60 30 1x100", always(1)),
        ("read-for-an-hour", always(1), "9x119 1x100"),
        ("read-once", always(1), "1x60 30 1x100"),
    ):
        node_target(fixture, node, always(1))
        on_node(fixture, "gpugauge_build_info", {"node": node}, always(1))
        fixture.add("scrape_duration_seconds", {"job": "gpugauge-node", "instance": f"{node}:9400"}, scrape)
        on_node(fixture, "gpugauge_source_read_duration_seconds", {"node": node, "source": "dcgm"}, read)
    fixture.add("scrape_duration_seconds", {"job": "other", "instance": "other:80"}, always(60))
    firing(fixture, SLOW, 14, "node")
    firing(fixture, SLOW, 17, "node", "read", "read-for-an-hour", "scrape")
    firing(fixture, SLOW, 74, "node", "read", "read-for-an-hour", "scrape")
    firing(fixture, SLOW, 80, "node", "read")
    check(tmp_path, fixture, groups=GROUPS)


def test_the_texts_have_seconds_and_what_is_missing(tmp_path):
    fixture, other = RuleFixture(), RuleFixture()
    on_node(fixture, "gpugauge_source_read_duration_seconds", {"node": "n", "source": "dcgm"}, always(12.4))
    texts(
        fixture,
        SLOW,
        20,
        {"node": "n"},
        "The GPU exporter of node n takes 12 seconds to answer or to read its GPUs.",
        "For 15 minutes a scrape of the GPU exporter of node n, or a read of one of its sources, has taken 12 seconds "
        "on average. Prometheus gives up after 10 seconds unless told otherwise: then data have holes.",
    )
    _allocated(other, "west", always(1))
    on_watcher(other, "gpugauge_gpu_pod_phase", {"gpu_namespace": "ml", "gpu_pod": "p"}, always(1), cluster="west")
    texts(
        other,
        DEPENDENCY,
        20,
        {"cluster": "west", "problem": "no_start_times"},
        "Nobody exposes the start times of GPU pods of cluster west.",
        "GPUs are allocated to pods, and neither a cluster watcher nor the adapter for kube-state-metrics exposes the "
        "start times of those pods: alerts on low utilization and on pending workloads cannot fire.",
    )
    check(tmp_path, fixture, other, groups=GROUPS)
