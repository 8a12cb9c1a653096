"""Clusters that another label tells apart: the rules with that label do what the generated ones do with `cluster`."""

import re
from dataclasses import replace

import pytest

from alerts import GROUPS
from alerts.__main__ import files
from alerts.rules.promql import formatted
from alerts.rules.rule import Alert
from alerts.rules.rulefile import annotations_of
from promql.cluster_label import with_cluster_label
from tests.alerts.fleet import FLAVORS, Gpu, Node, Pod, always
from tests.alerts.promtool import RuleFixture, run, write_test
from tests.promql import grouping_labels, selectors

LABEL = "k8s_cluster"
RULES = [rule for group in GROUPS for rule in group.rules]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_search_finds_every_use_of_the_label_in_an_expression_and_nothing_else(rule):
    before, after = formatted(rule.expr), with_cluster_label(formatted(rule.expr), LABEL)
    assert "cluster" not in grouping_labels(after)
    assert {label for _, matchers in selectors(after) for label in matchers if label == "cluster"} == set()
    assert [name for name, _ in selectors(after)] == [name for name, _ in selectors(before)]
    assert after.replace(LABEL, "cluster") == before


def test_the_search_changes_no_word_of_a_text_but_the_label():
    for alert in (rule for rule in RULES if isinstance(rule, Alert)):
        for text in annotations_of(alert).values():
            inside = re.findall(r"\{\{.*?\}\}", text)
            outside = re.sub(r"\{\{.*?\}\}", "", text)
            assert with_cluster_label(outside, LABEL) == outside
            assert all(not re.search(r"labels\.cluster\b", with_cluster_label(each, LABEL)) for each in inside)


def test_the_generator_with_another_label_writes_what_the_search_makes_of_the_committed_files():
    written = files(cluster_label=LABEL)
    for name, text in files().items():
        if name.startswith(("rules/", "prometheusrule")):
            assert written[name] == with_cluster_label(text, LABEL)
            assert "labels.cluster" not in written[name]


def test_what_cannot_be_a_label_is_rejected():
    with pytest.raises(ValueError, match="'k8s-cluster' is no name of a label"):
        with_cluster_label("", "k8s-cluster")


@pytest.mark.prometheus
@pytest.mark.parametrize("flavor", FLAVORS[:4:3], ids=lambda flavor: flavor.name)
def test_of_two_pods_of_one_name_in_two_clusters_the_idle_one_is_reported(tmp_path, flavor):
    """Field case: clusters are told apart by k8s_cluster, and both have a pod of the same name."""
    fixture = RuleFixture()
    for cluster, engine in (("eu", always(0)), ("us", always(0.95))):
        node = Node(fixture, replace(flavor, cluster=cluster), "same-name", cluster)
        node.up()
        node.pod(Pod())
        node.gpu(0, Gpu(engine))
    fixture.series = [(series.replace('cluster="', f'{LABEL}="'), values) for series, values in fixture.series]
    firing = 'ALERTS{alertname="GPUPodLowUtilization", alertstate="firing"}'
    fixture.expect(f"count by ({LABEL}) ({firing})", 40, ({LABEL: "eu"}, 1.0))
    rules = []
    for name, text in files(cluster_label=LABEL).items():
        if name.startswith("rules/"):
            (tmp_path / name.removeprefix("rules/")).parent.mkdir(exist_ok=True)
            (tmp_path / name.removeprefix("rules/")).write_text(text)
            rules.append(name.removeprefix("rules/"))
    path = write_test(tmp_path / "test.json", rules, [fixture])
    assert run(path)[path] == ""
