"""The committed files are current, and are what Prometheus, the Prometheus Operator and the runbook require."""

import re
import subprocess
from pathlib import Path

import promql_parser
import pytest
import yaml

from alerts import GROUPS
from alerts.__main__ import files, main
from alerts.expression import DEVICE, GPU, POD, WORKLOAD
from alerts.rule import RUNBOOK, Alert, Recording
from alerts.rulefile import annotations_of, labels_of
from tests.alerts.promtool import tool
from tests.promql import grouping_labels, selectors

pytestmark = pytest.mark.prometheus

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "deploy/generated"
RULES = [rule for group in GROUPS for rule in group.rules]
ALERTS = [rule for rule in RULES if isinstance(rule, Alert)]
RECORDED = {rule.name for rule in RULES if isinstance(rule, Recording)}


def test_the_committed_files_are_current():
    for name, text in files().items():
        assert (GENERATED / name).read_text() == text, f"{name}: run `python -m alerts`"
    written = {f"rules/{path.name}" for path in (GENERATED / "rules").iterdir()}
    assert written == {name for name in files() if name.startswith("rules/")}


def test_writing_elsewhere_gives_the_same_files_and_removes_rules_of_groups_that_are_gone(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/gone.yaml").touch()
    main(["--output", str(tmp_path), "--runbook", "https://example.com/book"])
    written = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*.yaml")}
    assert written == files("https://example.com/book")
    (group,) = yaml.safe_load(written["rules/exporters.yaml"])["groups"]
    addresses = [rule["annotations"]["runbook_url"] for rule in group["rules"]]
    assert "https://example.com/book#gpuwatcherdown" in addresses


def test_promtool_accepts_the_rule_files_without_a_warning():
    paths = sorted(map(str, (GENERATED / "rules").glob("*.yaml")))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_the_custom_resource_has_the_same_groups_as_the_files():
    resource = yaml.safe_load((GENERATED / "prometheusrule.yaml").read_text())
    assert (resource["apiVersion"], resource["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert resource["metadata"]["name"] == "gpugauge"
    by_file = [yaml.safe_load(text)["groups"][0] for name, text in files().items() if name.startswith("rules/")]
    assert resource["spec"]["groups"] == by_file


def test_a_file_has_every_part_of_its_rules():
    loaded = {}
    for name, text in files().items():
        if name.startswith("rules/"):
            for rule in yaml.safe_load(text)["groups"][0]["rules"]:
                loaded.setdefault(rule.get("record") or rule["alert"], []).append(rule)
    for rule in RULES:
        assert rule.expr in [found["expr"] for found in loaded[rule.name]]
    for alert in ALERTS:
        assert loaded[alert.name][0]["labels"] == labels_of(alert)
        assert loaded[alert.name][0]["for"] == alert.for_
        assert loaded[alert.name][0].get("keep_firing_for", "") == alert.keep_firing_for
        assert set(loaded[alert.name][0]["annotations"]) >= {"summary", "description", "runbook_url"}


def test_expressions_and_texts_are_in_the_files_as_they_were_written():
    """Every line in one piece: neither folded nor escaped."""
    content = "".join(text.replace("''", "'") for name, text in files().items() if name.startswith("rules/"))
    for rule in RULES:
        texts = [rule.expr, *annotations_of(rule, RUNBOOK).values()] if isinstance(rule, Alert) else [rule.expr]
        for line in "\n".join(texts).splitlines():
            assert line.strip() in content, rule.name


def test_one_alert_name_has_one_severity_and_none_is_info():
    names = [alert.name for alert in ALERTS]
    assert len(names) == len(set(names))
    assert all(alert.severity in ("critical", "warning") for alert in ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_heading_in_the_runbook_that_its_address_ends_in(alert):
    text = (ROOT / "docs/runbook.md").read_text()
    section = re.search(rf"^## {alert.name}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"docs/runbook.md has no heading {alert.name}"
    assert all(f"**{part}.**" in section[1] for part in ("Meaning", "Confirm", "Do"))
    assert annotations_of(alert, "x")["runbook_url"] == f"x#{alert.name.lower()}"
    assert f"Severity {alert.severity}, notify {alert.notify}, area {alert.area}" in section[1]


def test_the_runbook_has_no_section_for_an_alert_that_does_not_exist():
    text = (ROOT / "docs/runbook.md").read_text()
    assert set(re.findall(r"^## (\S+)$", text, re.MULTILINE)) == {alert.name for alert in ALERTS}


def test_the_queries_of_the_runbook_parse_and_select_recorded_or_exposed_series():
    text = (ROOT / "docs/runbook.md").read_text()
    queries = [quoted for quoted in re.findall(r"`([^`]+)`", text) if re.search(r"\w\{|:\w+:|> 0", quoted)]
    assert len(queries) > 8
    for query in queries:
        for name, _ in selectors(" ".join(query.split())):
            assert name in RECORDED or name == "up" or name.startswith("gpugauge_"), query


def test_recorded_names_are_level_metric_operation_and_read_only_what_exists():
    for rule in RULES:
        promql_parser.parse(rule.expr)
        if isinstance(rule, Recording):
            assert rule.name.count(":") == 2, rule.name
        for name, _ in selectors(rule.expr):
            assert ":" not in name or name in RECORDED, f"{rule.name} reads {name}, which no rule records"


def test_every_grouping_and_join_keeps_the_cluster():
    for rule in RULES:
        labels = grouping_labels(rule.expr)
        assert not labels or "cluster" in labels, rule.name


def test_no_rule_groups_or_joins_by_a_label_that_a_scrape_target_may_set():
    """Except `job` and `instance` in the rule that compares pod labels with those of the scrape target."""
    keys = {label for keys in (DEVICE, GPU, POD, WORKLOAD) for label in keys.split(", ")}
    more = {"gpu", "model", "GPU_I_PROFILE", "container", "uid", "workload_class", "priority_class", "reason"}
    for rule in RULES:
        allowed = keys | more | ({"job", "instance"} if "gpugauge_holder" in rule.name else set())
        assert grouping_labels(rule.expr) <= allowed, rule.name
