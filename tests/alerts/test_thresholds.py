"""Thresholds: an override takes precedence in both directions, per cluster or in all; a default is its constant."""

import re

import pytest

from alerts import GROUPS
from alerts.recorded.thresholds import THRESHOLDS
from tests.alerts.fleet import FLAVORS, Gpu, Node, Pod, always
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test
from tests.promql import selectors

RULES = [rule for group in GROUPS for rule in group.rules]
IN_FORCE = "cluster:gpugauge_threshold:value"
OVERRIDE = "global:gpugauge_threshold_override:value"
DEFAULT = re.compile(
    r'cluster:gpugauge_threshold:value\{alert="(\w+)"\}\)?\s+or '
    r"(?:on \(cluster\)\s+group by \(cluster\) \([^\n]+?\) \* |vector\()([0-9.e+]+)"
)


def test_the_default_in_every_expression_is_the_recorded_constant():
    values = {threshold.alert: threshold.value for threshold in THRESHOLDS}
    for rule in RULES:
        defaults = DEFAULT.findall(rule.expr)
        assert len(defaults) == rule.expr.count(IN_FORCE), f"{rule.name} reads a threshold without a default"
        for alert, default in defaults:
            assert values[alert] == float(default), f"{rule.name}: {alert}"


def test_every_threshold_is_read_and_has_a_meaning_of_its_own():
    read = {matchers["alert"].value for rule in RULES for name, matchers in selectors(rule.expr) if name == IN_FORCE}
    assert {threshold.alert for threshold in THRESHOLDS} == read
    assert len({threshold.meaning for threshold in THRESHOLDS}) == len(THRESHOLDS) == len(read)


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("overrides", "east", "west"),
    [
        ({}, 0.3, 0.3),
        ({"": 0.1}, 0.1, 0.1),
        ({"": 0.6}, 0.6, 0.6),
        ({"east": 0.1}, 0.1, 0.3),
        ({"": 0.6, "east": 0.1}, 0.1, 0.6),
    ],
    ids=["none", "lower", "higher", "of one cluster", "of one cluster and of all"],
)
def test_the_override_of_a_cluster_then_the_common_override_then_the_constant_is_in_force(
    tmp_path, overrides, east, west
):
    fixture = RuleFixture()
    for cluster in ("east", "west"):
        fixture.add("up", {"job": "prometheus", "cluster": cluster}, always(1))
    for cluster, value in overrides.items():
        for replica in ("a", "b"):
            labels = {"alert": "GPUPodLowUtilization", "cluster": cluster, "replica": replica}
            fixture.add(OVERRIDE, labels, always(value))
    fixture.add(OVERRIDE, {"alert": "GPUPodIdle"}, always(0.05))
    expected = [({"cluster": cluster}, value) for cluster, value in (("east", east), ("west", west))]
    fixture.expect(f'max by (cluster) ({IN_FORCE}{{alert="GPUPodLowUtilization"}})', 5, *expected)
    fixture.expect(f'count by (cluster) ({IN_FORCE}{{alert="GPUPodIdle"}} == 0.05)', 5, *_ones("east", "west"))
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


@pytest.mark.prometheus
def test_what_counts_as_idle_in_recorded_sums_follows_the_override(tmp_path):
    fixture = RuleFixture()
    fixture.add(OVERRIDE, {"alert": "GPUPodIdle"}, always(0.05))
    node = Node(fixture, FLAVORS[0], "idle")
    node.up()
    node.pod(Pod())
    node.gpu(0, Gpu(always(0.03)))
    for name in (
        "node:gpu_idle_devices:count",
        "node:gpu_idle_devices:count15m",
        "namespace:gpu_idle_devices:count15m",
    ):
        fixture.expect(f"sum({name})", 5, ({}, 1.0))
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""


def _ones(*clusters: str) -> list[tuple[dict[str, str], float]]:
    return [({"cluster": cluster}, 1.0) for cluster in clusters]
