"""GPUPodLowUtilization: the cases of the matrix with every flavor of exporter, its thresholds and its texts."""

import pytest

from alerts import GROUPS
from alerts.recorded.pod_states import EXEMPT_NAMESPACES, EXEMPT_PODS
from alerts.rules.rule import RUNBOOK, Alert
from alerts.rules.rulefile import annotations_of, labels_of
from exporter.cluster.kubernetes.objects import overrides
from tests.alerts.fleet import FLAVORS, Gpu, Node, Pod, always
from tests.alerts.matrix import expect_firing, matrix, threshold_fixture
from tests.alerts.promtool import RuleFixture, dashboard_of, run, write_rules, write_test
from tests.alerts.rows import ALERT, ROWS, UNKNOWN

pytestmark = pytest.mark.prometheus

ONE_OF_EACH = ("01", "02", "04", "10", "11", "12", "13", "18", "19", "20", "21", "26", "31", "")
"""The rows for flavors that differ in names and units alone."""

FULL = ("own-true", "own-false", "stock483-false")
SPELLINGS = tuple(flavor.name for flavor in FLAVORS if flavor.name not in FULL)


def test_the_matrix_has_every_row_and_each_sets_the_workload_class():
    assert {row.name[:2] for row in ROWS} >= {f"{number:02}" for number in range(1, 24)}
    assert all(pod.workload_class for row in ROWS if row.name[:2] <= "23" for pod in row.pods)


def test_exemptions_are_selected_by_the_label_value_that_the_watcher_exposes_or_the_name_of_the_alert():
    for expression in (EXEMPT_PODS, EXEMPT_NAMESPACES):
        assert expression.count(f'{{alert=~"{ALERT}|{overrides.ALERT}"}}') == expression.count("_alert_exemption") == 2


@pytest.mark.parametrize("flavor", FULL)
def test_every_row_of_the_matrix_gives_its_alerts(tmp_path, flavor):
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [matrix(flavor)])
    assert run(path)[path] == ""


def test_expositions_of_every_generation_and_spelling_give_the_same_alerts(tmp_path):
    rules = write_rules(tmp_path)
    only = tuple(start for start in ONE_OF_EACH if start)
    fixture = matrix(*SPELLINGS, only=only)
    assert run(path := write_test(tmp_path / "test.json", rules, [fixture]))[path] == ""


@pytest.mark.parametrize("seconds", [30, 120, 240])
def test_rules_evaluated_at_another_interval_give_the_same_alerts(tmp_path, seconds):
    fixture = RuleFixture()
    for load, firing in ((0.1, True), (0.4, False)):
        node, pod = Node(fixture, FLAVORS[0], f"load-{load}"), Pod()
        node.pod(pod)
        node.gpu(0, Gpu(always(load)))
        expect_firing(fixture, node, 24, [])
        expect_firing(fixture, node, 52, [pod] if firing else [])
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture], interval=seconds)
    assert run(path)[path] == ""


def test_the_text_says_how_many_devices_are_known_where_some_are_not(tmp_path):
    fixture = RuleFixture()
    node, pod = Node(fixture, FLAVORS[0], "7-of-8"), Pod()
    node.pod(pod)
    for number in range(8):
        node.gpu(number, Gpu(always(0.02063) if number else None))
    alert = next(rule for group in GROUPS for rule in group.rules if rule.name == ALERT)
    assert isinstance(alert, Alert)
    labels = {**labels_of(alert), **node.workload(pod), "namespace": node.namespace}
    description = (
        f"The GPUs of Job {node.namespace}/job-p (pod p on node {node.node}) were busy 2 % of the last 15 minutes, "
        "below the threshold of 30 %. Known are 7 of 8 devices of the pod."
    )
    summary = f"The GPUs of pod {node.namespace}/p have low utilization."
    text = {**annotations_of(alert), "summary": summary, "description": description}
    fixture.expect_alerts(ALERT, 40, (labels, {**text, "dashboard_url": dashboard_of(alert, labels)}))
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


@pytest.mark.parametrize(
    "values",
    [{}, {ALERT: (0.5, 0.5), UNKNOWN: (0.02,)}, {ALERT: (0.1,), UNKNOWN: (0.001,)}],
    ids=["not loaded", "raised and seen twice", "lowered"],
)
def test_thresholds_are_constants_that_can_be_changed_or_missing(tmp_path, values):
    groups = GROUPS[1:]
    path = write_test(tmp_path / "test.json", write_rules(tmp_path, groups), [threshold_fixture(values)], groups)
    assert run(path)[path] == ""


def test_the_alert_has_the_labels_of_the_owner_and_its_text_has_the_measured_value(tmp_path):
    fixture = RuleFixture()
    node = Node(fixture, FLAVORS[1], "text")
    pod = Pod(override=0.25)
    node.pod(pod)
    node.gpu(0, Gpu(always(0.125)))
    alert = next(rule for group in GROUPS for rule in group.rules if rule.name == ALERT)
    assert isinstance(alert, Alert)
    labels = {**labels_of(alert), **node.workload(pod), "cluster": "west", "namespace": "own-false-text"}
    assert labels["severity"] == "warning"
    assert labels["notify"] == "digest"
    text = {
        "summary": "The GPUs of pod own-false-text/p have low utilization.",
        "description": (
            "The GPUs of Job own-false-text/job-p (pod p on node node-own-false-text) were busy 12 % of the last "
            "15 minutes, below the threshold of 25 %."
        ),
        "runbook_url": f"{RUNBOOK}#gpupodlowutilization",
        "dashboard_url": "/d/gpu-workload?var-cluster=west&var-namespace=own-false-text&var-workload=job-p",
    }
    assert set(text) == set(annotations_of(alert))
    fixture.expect_alerts(ALERT, 40, (labels, text))
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""
