"""The roles of the manifests and docs/permissions.md are what the table of permissions says."""

import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from exporter.cluster.kubernetes.watching.permissions import LEASE_PARTS, WATCHED
from exporter.cluster.metrics.families import METRICS
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from scripts.permissions import OUTPUTS

ROOT = Path(__file__).parents[2]
COMMITTED = {
    "cluster-role": ROOT / "deploy/manifests/cluster-role.yaml",
    "lease-role": ROOT / "deploy/two-replicas/role.yaml",
    "chart": ROOT / "deploy/helm/gpugauge/files/watcher-permissions.yaml",
    "document": ROOT / "docs/permissions.md",
}
PARTS = {"cluster-role": WATCHED, "lease-role": LEASE_PARTS}


@pytest.mark.parametrize("output", COMMITTED)
def test_what_is_committed_is_current(output):
    assert OUTPUTS[output]() == COMMITTED[output].read_text(encoding="utf-8"), "run 'make generate'"


def test_running_the_script_prints_one_of_them():
    command = [sys.executable, "-m", "scripts.permissions", "lease-role"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == OUTPUTS["lease-role"]()


@pytest.mark.parametrize("output", PARTS)
def test_a_role_has_one_rule_for_each_part(output):
    role = yaml.safe_load(OUTPUTS[output]())
    kubernetes_validate.validate(role, kubernetes_validate.latest_version(), strict=True)
    for rule, part in zip(role["rules"], PARTS[output], strict=True):
        assert rule["apiGroups"] == [part.group]
        assert (rule["resources"], rule["verbs"]) == (list(part.resources), list(part.verbs))
        assert rule.get("resourceNames", []) == list(part.object_names)


def test_no_line_of_a_role_is_longer_than_the_others_of_the_project():
    assert max(len(line) for output in PARTS for line in OUTPUTS[output]().splitlines()) <= 120


def test_metrics_and_reasons_that_the_document_names_exist():
    metrics = {metric.name for metric in METRICS}
    reasons = {str(reason) for reason in PendingReason}
    for part in (*WATCHED, *LEASE_PARTS):
        for name in re.findall(r"`(\w+)`", part.missing):
            assert name in metrics | reasons | {"resourceclaim"}


def test_no_cell_breaks_its_table():
    for table in OUTPUTS["document"]().split("\n\n"):
        assert len({row.count("|") for row in table.splitlines() if row.startswith("|")}) <= 1
