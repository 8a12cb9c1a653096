"""GPURecordedSeriesMissing: what exporters expose and no rule records; GPURuleEvaluationFailing: rules that fail."""

import pytest

from alerts import GROUPS
from alerts.alerting import rules_health
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import check, firing, on_node, on_watcher

pytestmark = pytest.mark.prometheus

MISSING, FAILING = "GPURecordedSeriesMissing", "GPURuleEvaluationFailing"
POD = {"gpu_namespace": "ml", "gpu_pod": "train-0"}
DEVICE = {"node": "node-1", "UUID": "GPU-1"}
EXPOSED = (
    ("gpugauge_device_info", DEVICE, "node:gpus:count"),
    ("gpugauge_allocation_busy_ratio", {**DEVICE, **POD}, "pod:gpu_busy:ratio"),
    ("gpugauge_gpu_pod_info", {"node": "node-1", **POD, "workload": "train"}, "pod:gpu_workload:info"),
    (
        "gpugauge_pending_pod_since_timestamp_seconds",
        {**POD, "workload": "train", "workload_type": "job"},
        "workload:gpu_pending_pods:count",
    ),
)
ALONE = (rules_health.GROUP,)
"""Without any of the groups that record."""


def exposed(fixture: RuleFixture, *wanted: str) -> None:
    for name, labels, recorded in EXPOSED:
        if recorded in wanted:
            (on_node if "UUID" in labels else on_watcher)(fixture, name, labels, always(1), cluster="west")
    on_node(fixture, "gpugauge_allocation_info", {**DEVICE, **POD}, always(1), cluster="west")


@pytest.mark.parametrize("recorded", [recorded for _, _, recorded in EXPOSED])
def test_each_is_reported_alone_after_ten_minutes(tmp_path, recorded):
    fixture = RuleFixture()
    exposed(fixture, recorded)
    firing(fixture, MISSING, 9, "recorded")
    firing(fixture, MISSING, 11, "recorded", recorded)
    firing(fixture, MISSING, 11, "cluster", "west")
    check(tmp_path, fixture, groups=ALONE)


def test_a_series_that_another_cluster_records_does_not_hide_it(tmp_path):
    fixture = RuleFixture()
    exposed(fixture, *(recorded for _, _, recorded in EXPOSED))
    for _, _, recorded in EXPOSED:
        fixture.add(recorded, {"cluster": "east"}, always(1))
        fixture.add(recorded, {"cluster": "south"}, always(1))
    firing(fixture, MISSING, 12, "recorded", *(recorded for _, _, recorded in EXPOSED))
    check(tmp_path, fixture, groups=ALONE)


def test_devices_without_a_node_or_uuid_and_pods_without_allocations_are_not_expected_to_be_recorded(tmp_path):
    fixture = RuleFixture()
    for labels in ({"node": "", "UUID": "GPU-1"}, {"node": "node-1", "UUID": ""}):
        on_node(fixture, "gpugauge_device_info", labels, always(1))
        on_node(fixture, "gpugauge_allocation_busy_ratio", {**labels, **POD}, always(1))
    on_watcher(fixture, "gpugauge_gpu_pod_info", {"node": "node-1", **POD, "workload": "train"}, always(1))
    firing(fixture, MISSING, 12, "recorded")
    check(tmp_path, fixture, groups=ALONE)


def test_the_alert_lasts_five_minutes_longer_than_its_condition(tmp_path):
    fixture = RuleFixture()
    on_node(fixture, "gpugauge_device_info", DEVICE, "1x40 stale")
    firing(fixture, MISSING, 24, "recorded", "node:gpus:count")
    firing(fixture, MISSING, 27, "recorded")
    check(tmp_path, fixture, groups=ALONE)


def test_with_all_rules_nothing_is_missing(tmp_path):
    fixture = RuleFixture()
    exposed(fixture, *(recorded for _, _, recorded in EXPOSED))
    firing(fixture, MISSING, 15, "recorded")
    check(tmp_path, fixture, groups=GROUPS)


FAILURES = "prometheus_rule_evaluation_failures_total"


def test_a_group_of_ours_that_fails_is_reported_and_one_that_works_or_is_of_others_is_not(tmp_path):
    fixture = RuleFixture()
    for group, values in (
        ("/etc/rules/pods.yaml;gpugauge-pods", "0x10 1+1x40"),
        ("/etc/rules/nodes.yaml;gpugauge-nodes", "3x60"),
        ("/etc/rules/others.yaml;others", "0+1x60"),
    ):
        fixture.add(FAILURES, {"rule_group": group, "job": "prometheus", "instance": "p"}, values)
    firing(fixture, FAILING, 10, "rule_group")
    firing(fixture, FAILING, 18, "rule_group", "/etc/rules/pods.yaml;gpugauge-pods")
    firing(fixture, FAILING, 60, "rule_group")
    check(tmp_path, fixture, groups=ALONE)
