"""The chart and the plain manifests are the same where they overlap, option by option."""

import os

import pytest
import yaml

from tests.deploy.helm.chart import NEEDS_HELM, OF_HELM, nested, rendered
from tests.deploy.manifests import ROOT, kustomized

pytestmark = NEEDS_HELM

OPTIONS = {
    "": {},
    "audit-log": nested(auditLog__enabled=True),
    "dra": nested(dra__enabled=True),
    "pod-metadata": nested(podMetadata__source="api"),
    "pod-metadata-kubelet": nested(podMetadata__source="kubelet"),
    "process-metrics": nested(processMetrics__enabled=True),
    "two-replicas": nested(watcher__replicas=2),
}
BY_NAME = {"env", "volumes", "volumeMounts"}
"""Lists whose order says nothing."""


def comparable(node):
    """An object without the labels of Helm and without the order of lists that have none."""
    if isinstance(node, list):
        return [comparable(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: sorted(map(comparable, value), key=lambda each: each["name"]) if key in BY_NAME else comparable(value)
        for key, value in node.items()
        if key not in OF_HELM
    }


def test_every_option_of_the_manifests_is_compared():
    found = {path.parent.name for path in (ROOT / "deploy").glob("*/kustomization.yaml")} - {"manifests"}
    assert found == OPTIONS.keys() - {""}


@pytest.mark.parametrize("option", OPTIONS)
def test_the_objects_are_those_of_the_manifests(option, tmp_path):
    overlay = {"resources": [os.path.relpath(ROOT / "deploy", tmp_path)]}
    if option:
        overlay["components"] = [os.path.relpath(ROOT / "deploy" / option, tmp_path)]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    plain = {(each["kind"], each["metadata"]["name"]): each for each in kustomized(tmp_path)}
    # A chart does not make its namespace; `helm install --create-namespace` does.
    del plain["Namespace", "gpugauge"]
    chart = rendered({**OPTIONS[option], "image": {"repository": "gpugauge", "tag": "0.1.0"}})
    assert chart.keys() == plain.keys()
    for name, given in plain.items():
        assert comparable(chart[name]) == comparable(given), name
