"""GPUPodLowUtilization against its matrix, on pages of every kind, and what its text says."""

import pytest

from alerts import GROUPS
from alerts.rule import RUNBOOK, Alert
from alerts.rulefile import annotations_of, labels_of
from tests.alerts.fleet import FLAVOURS, Card, Node, Pod, always
from tests.alerts.matrix import ALERT, ROWS, matrix, threshold_scene
from tests.alerts.promtool import Scene, run, write_rules, write_test

ONE_OF_EACH = ("01", "02", "04", "10", "11", "12", "13", "18", "19", "20", "21", "26", "31", "")
"""On the pages that only spell things differently."""

FULL = ("own-true", "own-false", "stock483-false")
SPELLINGS = tuple(flavour.name for flavour in FLAVOURS if flavour.name not in FULL)


def test_the_matrix_has_every_row_and_each_says_which_class_it_judges():
    assert {row.name[:2] for row in ROWS} >= {f"{number:02}" for number in range(1, 24)}
    assert all(pod.cls for row in ROWS if row.name[:2] <= "23" for pod in row.pods)


@pytest.mark.parametrize("flavour", FULL)
def test_every_row_of_the_matrix_gives_its_alerts(tmp_path, flavour):
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [matrix(flavour)])
    assert run(path)[path] == ""


def test_pages_of_every_generation_and_spelling_give_the_same_alerts(tmp_path):
    rules = write_rules(tmp_path)
    only = tuple(start for start in ONE_OF_EACH if start)
    scene = matrix(*SPELLINGS, only=only)
    assert run(path := write_test(tmp_path / "test.json", rules, [scene]))[path] == ""


@pytest.mark.parametrize(
    "values",
    [{}, {ALERT: (0.5, 0.5), "GPUPodIdle": (0.02,)}, {ALERT: (0.1,), "GPUPodIdle": (0.001,)}],
    ids=["not loaded", "raised and seen twice", "lowered"],
)
def test_thresholds_are_constants_that_can_be_changed_or_missing(tmp_path, values):
    groups = GROUPS[1:]
    path = write_test(tmp_path / "test.json", write_rules(tmp_path, groups), [threshold_scene(values)], groups)
    assert run(path)[path] == ""


def test_the_alert_carries_its_owner_and_says_what_was_measured(tmp_path):
    scene = Scene()
    node = Node(scene, FLAVOURS[1], "text")
    pod = Pod(override=0.25)
    node.pod(pod)
    node.card(0, Card(always(0.125)))
    alert = next(rule for group in GROUPS for rule in group.rules if rule.name == ALERT)
    assert isinstance(alert, Alert)
    labels = {**labels_of(alert), **node.workload(pod), "cluster": "west", "namespace": "own-false-text"}
    assert labels["severity"] == "warning"
    assert labels["notify"] == "digest"
    text = {
        "summary": "Pod own-false-text/p holds GPUs and hardly uses them.",
        "description": (
            "The GPUs of Job own-false-text/job-p (pod p on node node-own-false-text) were busy 12.5% of the last "
            "15 minutes, below its limit of 25%."
        ),
        "runbook_url": f"{RUNBOOK}#gpupodlowutilization",
    }
    assert set(text) == set(annotations_of(alert, RUNBOOK))
    scene.expect_alerts(ALERT, 40, (labels, text))
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [scene])
    assert run(path)[path] == ""
