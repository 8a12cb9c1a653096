"""The committed files are current, and are what Prometheus, the Prometheus Operator and the runbook require."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from alerts import ADAPTERS, GROUPS
from alerts.__main__ import files, main
from alerts.rules.keys import DEVICE, GPU, POD, WORKLOAD
from alerts.rules.promql import formatted
from alerts.rules.rule import Alert, Links, Recording
from alerts.rules.rulefile import annotations_of, labels_in_file
from exporter.commands.metrics import sections
from exporter.node.devices.fields.field import fields_by_name
from tests.alerts.promtool import tool
from tests.promql import grouping_labels, selectors

pytestmark = pytest.mark.prometheus

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "deploy/generated"
RULES = [rule for group in GROUPS for rule in group.rules]
ALERTS = [rule for rule in RULES if isinstance(rule, Alert)]
OF_USERS = "global:gpugauge_threshold_override:value"
"""What users record themselves."""
RECORDED = {rule.name for rule in RULES if isinstance(rule, Recording)}


def test_the_committed_files_are_current():
    for name, text in files().items():
        assert (GENERATED / name).read_text() == text, f"{name}: run `python -m alerts`"
    written = {str(path.relative_to(GENERATED)) for path in (GENERATED / "rules").rglob("*.yaml")}
    assert written == {name for name in files() if name.startswith("rules/")}


def test_writing_elsewhere_gives_the_same_files_and_removes_rules_of_groups_that_are_gone(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/gone.yaml").touch()
    main(["--output", str(tmp_path), "--runbook", "https://example.com/book", "--grafana", "https://g/"])
    written = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*.*")}
    assert written == files(Links("https://example.com/book", "https://g"))
    (group,) = yaml.safe_load(written["rules/watcher.yaml"])["groups"]
    addresses = [rule["annotations"]["runbook_url"] for rule in group["rules"]]
    assert "https://example.com/book#gpuwatcherdown" in addresses
    assert all(rule["annotations"]["dashboard_url"].startswith("https://g/d/gpu-") for rule in group["rules"])


def test_promtool_accepts_the_rule_files_without_a_warning():
    paths = sorted(map(str, (GENERATED / "rules").rglob("*.yaml")))
    done = subprocess.run(
        [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_the_custom_resources_have_the_same_groups_as_the_files_and_one_for_each_adapter():
    written = files()
    by_file = {name: yaml.safe_load(text)["groups"][0] for name, text in written.items() if name.startswith("rules/")}
    of_adapters = {f"rules/adapters/{group.name.removeprefix('gpugauge-')}.yaml" for group in ADAPTERS}
    resources = {name: yaml.safe_load(text) for name, text in written.items() if name.startswith("prometheusrule")}
    for resource in resources.values():
        assert (resource["apiVersion"], resource["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    main = resources.pop("prometheusrule.yaml")
    assert main["metadata"]["name"] == "gpugauge"
    assert main["spec"]["groups"] == [group for name, group in by_file.items() if name not in of_adapters]
    for name, resource in resources.items():
        group = by_file[name.replace("prometheusrule-", "rules/adapters/")]
        assert (resource["metadata"]["name"], resource["spec"]["groups"]) == (group["name"], [group])
    assert len(resources) == len(ADAPTERS) == 2


def test_the_file_for_mimir_has_the_same_groups_and_none_is_over_its_default_limits():
    written = files()
    mimir = yaml.safe_load(written["mimir.yaml"])
    assert mimir["namespace"] == "gpugauge"
    assert mimir["groups"] == yaml.safe_load(written["prometheusrule.yaml"])["spec"]["groups"]
    assert max(len(group.rules) for group in GROUPS) <= 20
    assert len(GROUPS) <= 70


def test_a_file_has_every_part_of_its_rules():
    loaded = {}
    for name, text in files().items():
        if name.startswith("rules/"):
            for rule in yaml.safe_load(text)["groups"][0]["rules"]:
                loaded.setdefault(rule.get("record") or rule["alert"], []).append(rule)
    for rule in RULES:
        assert formatted(rule.expr) in [found["expr"] for found in loaded[rule.name]]
    for alert in ALERTS:
        assert loaded[alert.name][0]["labels"] == labels_in_file(alert)
        assert loaded[alert.name][0].get("for", "") == alert.for_
        assert loaded[alert.name][0].get("keep_firing_for", "") == alert.keep_firing_for
        assert set(loaded[alert.name][0]["annotations"]) >= {"summary", "description", "runbook_url", "dashboard_url"}


def test_expressions_and_texts_are_in_the_files_as_they_were_written():
    """Every line in one piece: neither folded nor escaped."""
    content = "".join(text.replace("''", "'") for name, text in files().items() if name.startswith("rules/"))
    for rule in RULES:
        expression = formatted(rule.expr)
        texts = [expression, *annotations_of(rule).values()] if isinstance(rule, Alert) else [expression]
        for line in "\n".join(texts).splitlines():
            assert line.strip() in content, rule.name


def test_one_alert_name_has_one_severity_and_none_is_info():
    names = [alert.name for alert in ALERTS]
    assert len(names) == len(set(names))
    assert all(alert.severity in ("critical", "warning") or alert.name == "GPUAlertingWatchdog" for alert in ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_link_to_a_dashboard_is_filled_from_labels_that_the_alert_has(alert):
    """Those of its expression; `cluster` is there where clusters are told apart."""
    address = annotations_of(alert)["dashboard_url"]
    assert re.fullmatch(r"/d/gpu-[a-z]+\?(&?var-(\w+)=\{\{ \$labels\.(\2) \| urlquery \}\})+", address)
    for label in set(alert.dashboard.variables) - {"cluster"}:
        assert f"$labels.{label}" in alert.summary + alert.description, f"{alert.name} never speaks of its {label}"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_heading_in_the_runbook_that_its_address_ends_in(alert):
    text = (ROOT / "docs/runbook.md").read_text()
    section = re.search(rf"^## {alert.name}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"docs/runbook.md has no heading {alert.name}"
    assert all(f"**{part}.**" in section[1] for part in ("Meaning", "Confirm", "Do"))
    assert annotations_of(alert, Links("x"))["runbook_url"] == f"x#{alert.name.lower()}"
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
            exposed = name.startswith(("gpugauge_", "DCGM_EXP_")) or name in fields_by_name()
            assert exposed or name in RECORDED or name in ("up", "ALERTS"), query


def test_recorded_names_are_level_metric_operation_and_those_of_adapters_are_those_of_the_exporters():
    exposed = {metric.name for section in sections() for metric in section.metrics}
    of_adapters = {rule.name for group in ADAPTERS for rule in group.rules}
    assert of_adapters <= exposed
    for rule in RULES:
        if isinstance(rule, Recording) and rule.name not in of_adapters:
            assert rule.name.count(":") == 2, rule.name
            assert rule.name.partition(":")[0] in {
                "global",
                "cluster",
                "model",
                "node",
                "namespace",
                "workload",
                "pod",
            } | ({"namespace_pod"} if "pending" in rule.name else set())
        for name, _ in selectors(rule.expr):
            assert ":" not in name or name in {*RECORDED, OF_USERS}, f"{rule.name} reads {name}, which no rule records"


def documented_queries() -> list[str]:
    """The queries of docs/rules.md, from the second column of its table."""
    rows = re.findall(r"^\|[^|`]+(?:`[^`]*`[^|`]*)*\|(.+)\|$", (ROOT / "docs/rules.md").read_text(), re.MULTILINE)
    return [query for row in rows for query in re.findall(r"`([^`]+:[a-z0-9_]+:[^`]+)`", row)]


def test_documented_queries_parse_and_read_what_is_recorded():
    assert len(documented_queries()) > 20
    for query in documented_queries():
        assert {name for name, _ in selectors(query)} <= RECORDED, query


def test_what_is_recorded_is_read_by_a_rule_a_panel_the_runbook_or_a_documented_query():
    read = {name for rule in RULES for name, _ in selectors(rule.expr)}
    read |= {name for query in documented_queries() for name, _ in selectors(query)}
    texts = [
        (ROOT / "docs/runbook.md").read_text(),
        *(annotation for alert in ALERTS for _, annotation in alert.annotations),
    ]
    texts += [alert.description for alert in ALERTS]
    texts += [path.read_text() for path in (GENERATED / "dashboards").glob("*.json")]
    mentioned = {name for text in texts for name in re.findall(r"[a-z_]+:[a-z0-9_]+:[a-z0-9_]+", text)}
    of_adapters = {rule.name for group in ADAPTERS for rule in group.rules}
    panels = "".join(texts)
    unread = RECORDED - read - mentioned - {name for name in of_adapters if name in panels}
    assert unread - DOCUMENTED == set()


DOCUMENTED = {
    "gpugauge_device_sm_active_ratio",
    "gpugauge_gpu_power_limit_watts",
    "gpugauge_allocation_tensor_active_ratio",
}
"""What the adapter for dcgm-exporter records so that queries of the documents give the same with either exporter."""


def test_every_grouping_and_join_keeps_the_cluster():
    for rule in RULES:
        labels = grouping_labels(rule.expr)
        assert not labels or "cluster" in labels, rule.name


def test_no_rule_groups_or_joins_by_a_label_that_a_scrape_target_may_set():
    """Except where DCGM-named series are read, which have no other, and in rules about scrapes."""
    keys = {*DEVICE, *GPU, *POD, *WORKLOAD}
    more = {
        "GPU_I_PROFILE",
        "blocker",
        "container",
        "driver_version",
        "fault",
        "field",
        "gpu",
        "le",
        "model",
        "phase",
        "pool",
        "priority_class",
        "problem",
        "queue",
        "rack",
        "reason",
        "resource",
        "sha256",
        "size",
        "source",
        "version",
        "workload_class",
        "writer",
        "xid",
        "zone",
    }
    own = {"gpu_namespace", "gpu_pod", "gpu_container", "gpu_pod_uid"}
    of_adapters = {rule.name for group in ADAPTERS for rule in group.rules} | {"node:gpu_fault:info"}
    for rule in RULES:
        if rule.name not in of_adapters:
            removed = (
                {"exported_namespace", "exported_pod", "exported_container"} if "namespace:" in rule.name else set()
            )
            allowed = keys | more | own | removed | OF_TARGETS.get(rule.name, set())
            assert grouping_labels(rule.expr) <= allowed, rule.name


OF_TARGETS = {
    "GPUDeviceLabelsMissing": {"job"},
    "GPUClusterLabelsDisagree": {"job"},
    "GPURuleEvaluationFailing": {"rule_group"},
    "GPUExporterSlow": {"job", "instance"},
    "GPUWatcherDown": {"job", "instance"},
    "node:gpu_exporter_target:info": {"job", "instance"},
    "node:gpu_exporter_up:ratio": {"job", "instance"},
}
"""Rules about scrapes themselves, with what names those."""
