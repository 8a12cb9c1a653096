"""What rules, dashboards and commands select is exposed by the exporter, recorded by a rule, or listed as foreign."""

import json
import re
from pathlib import Path

import pytest

from alerts import GROUPS
from alerts.rules.rule import Alert, Recording
from exporter.commands.explain.past import queries as pod_queries
from exporter.commands.metrics import sections
from exporter.commands.report import queries, receipt_queries
from exporter.metric import Kind
from exporter.node.attribution.series.normalized_metrics import (
    ALLOCATION_BUSY,
    ALLOCATION_MEMORY_USED,
    ALLOCATION_TENSOR,
)
from exporter.node.devices.fields.field import fields_by_name
from tests.dashboards.rendered import with_windows
from tests.promql import grouping_labels, selectors

FOREIGN = {
    "up": {"job", "instance", "node", "namespace", "pod"},
    "ALERTS": {"alertname", "alertstate", "component", "namespace", "workload", "pod", "area", "severity", "UUID"},
    "ALERTS_FOR_STATE": {"alertname", "component", "namespace", "workload", "pod", "severity", "area", "UUID"},
    "prometheus_rule_evaluation_failures_total": {"rule_group", "fault"},
    "global:gpugauge_threshold_override:value": {"alert", "namespace", "priority_class"},
    "prometheus_rule_group_last_duration_seconds": {"rule_group"},
    "prometheus_rule_group_iterations_missed_total": {"rule_group"},
    "scrape_samples_scraped": {"job", "instance"},
    "scrape_duration_seconds": {"job", "instance"},
    "kube_pod_start_time": {"namespace", "pod"},
    "kube_pod_owner": {"namespace", "pod", "owner_kind", "owner_name", "owner_is_controller"},
    "kube_pod_created": {"namespace", "pod"},
    "kube_pod_deletion_timestamp": {"namespace", "pod"},
    "kube_pod_container_resource_requests": {"namespace", "pod", "container", "resource"},
    "kube_pod_init_container_resource_requests": {"namespace", "pod", "container", "resource"},
    "kube_pod_status_reason": {"namespace", "pod", "reason"},
    "kube_pod_status_scheduled": {"namespace", "pod", "condition"},
    "kube_pod_status_unschedulable": {"namespace", "pod"},
    "kube_pod_status_phase": {"namespace", "pod", "phase"},
    "kube_pod_container_status_restarts_total": {"namespace", "pod", "container"},
    "container_cpu_cfs_throttled_periods_total": {"namespace", "pod", "container"},
    "container_cpu_cfs_periods_total": {"namespace", "pod", "container"},
    "container_cpu_usage_seconds_total": {"namespace", "pod", "container"},
    "container_pressure_io_waiting_seconds_total": {"namespace", "pod", "container"},
}
"""Labels of series that Prometheus writes itself, that users record, of kube-state-metrics, and of cAdvisor."""

TARGET = {"cluster", "job", "instance", "node"}
"""Labels that a scrape adds; `cluster` comes from relabeling or federation."""

DCGM = {
    "gpu", "UUID", "uuid", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "GPU_CI_ID", "hostname",
    "Hostname", "namespace", "pod", "container", "pod_name", "pod_namespace", "container_name", "pod_uid",
    "exported_namespace", "exported_pod", "exported_container",
}  # fmt: skip
"""Labels of DCGM-named series in every generation, and their names after a scrape without honor_labels."""

COPIED = {"uid", "found_node", "found_uuid", "rule_group", "fault"}
"""Labels that rules copy under another name, those that the adapter for dcgm-exporter makes of several,
and one that Prometheus sets on its own series."""


ALERT = {"alertname", "severity", "area"}
"""Labels that our alerts have and no series."""


MEMORY_OF_OWNERS = {
    "namespace:gpu_memory_used_bytes:sum",
    "workload:gpu_memory_used_bytes:avg5m",
    "workload:gpu_memory_used_bytes:max5m",
}
"""Recorded series that are absent while exporters run with `--allocation-labels none`."""


def exposed():
    """The label names of every metric of the two programs, by metric name."""
    found = {}
    for section in sections():
        for metric in section.metrics:
            found.setdefault(metric.name, set()).update(metric.schema.names)
            if metric.kind is Kind.HISTOGRAM:
                found[f"{metric.name}_bucket"] = {*metric.schema.names, "le"}
    return found


EXPOSED = exposed()
RULES = {f"{group.name}: {rule.name}": rule for group in GROUPS for rule in group.rules}
ADDED = {name for rule in RULES.values() if isinstance(rule, Recording) for name, _ in rule.labels}
RECORDED = {rule.name for rule in RULES.values() if isinstance(rule, Recording)}


def panel_expressions():
    for file in sorted(Path("deploy/generated/dashboards").glob("*.json")):
        for panel in panels(json.loads(file.read_text())["panels"]):
            for target in panel.get("targets", ()):
                yield f"{file.stem}: {panel['title']} {target['refId']}", with_windows(target["expr"])


def panels(found):
    for panel in found:
        yield panel
        yield from panels(panel.get("panels", ()))


def command_expressions():
    for module in COMMAND_QUERIES:
        for name, text in vars(module).items():
            if name.isupper():
                sized = text.replace("$range", "1d").replace("$steps", "1d:5m")
                yield f"{module.__name__}: {name}", PLACE.sub("1", sized)


COMMAND_QUERIES = (pod_queries, queries, receipt_queries)
PLACE = re.compile(r"\$[a-z_]+")
EXPRESSIONS = {name: rule.expr for name, rule in RULES.items()} | dict(panel_expressions())
ALL = EXPRESSIONS | dict(command_expressions())
HISTOGRAM = re.compile(r"_(bucket|count|sum)$")


def labels_of(name):
    """The labels by which a series may be selected; None for any."""
    if name in RECORDED:
        return None
    if name in FOREIGN:
        return FOREIGN[name] | TARGET
    base = HISTOGRAM.sub("", name)
    if base != name and base in EXPOSED:
        return EXPOSED[base] | TARGET | {"le"}
    if name in EXPOSED and not name.startswith("DCGM_"):
        return EXPOSED[name] | TARGET
    return DCGM | TARGET if name in fields_by_name() else set()


def test_only_dcgm_named_series_call_the_node_hostname():
    renamed = {"hostname", "Hostname"}
    assert [name for name, labels in EXPOSED.items() if labels & renamed and not name.startswith("DCGM_")] == []
    of_the_node = [section for section in sections() if section.title.startswith("Node exporter:")]
    own = [metric for section in of_the_node for metric in section.metrics if metric.name.startswith("gpugauge_")]
    assert [metric.name for metric in own if "node" not in metric.schema.names] == []


def test_expressions_of_rules_and_panels_are_found():
    assert len(EXPRESSIONS) > 60
    assert any("gpu-fleet" in name for name in EXPRESSIONS)


@pytest.mark.parametrize("where", sorted(ALL))
def test_an_expression_selects_only_series_and_labels_that_exist(where):
    for name, matchers in selectors(ALL[where]):
        known = name in EXPOSED or HISTOGRAM.sub("", name) in EXPOSED
        assert known or name in RECORDED | FOREIGN.keys() | fields_by_name().keys(), f"{name} is exposed by nothing"
        allowed = labels_of(name)
        if allowed is not None:
            assert set(matchers) <= allowed, f"{name} has no such label"


@pytest.mark.parametrize("where", sorted(ALL))
def test_an_expression_groups_only_by_labels_that_something_sets(where):
    known = DCGM | TARGET | COPIED | ALERT | ADDED | {"le"}.union(*EXPOSED.values(), *FOREIGN.values())
    assert grouping_labels(ALL[where]) <= known


def test_alerts_and_panels_read_of_the_values_under_pods_the_one_that_is_exposed_without_labels_of_pods_too():
    """Memory by workload and namespace, for reports, is absent without them; docs/rules.md says so."""
    under_pods = {each.name for each in (ALLOCATION_BUSY, ALLOCATION_TENSOR, ALLOCATION_MEMORY_USED)}
    readers = {where for where, text in EXPRESSIONS.items() if under_pods & {name for name, _ in selectors(text)}}
    of_memory = {where for where in readers if "gpugauge_allocation_busy_ratio" not in EXPRESSIONS[where]}
    assert {where.partition(": ")[2] for where in of_memory} == MEMORY_OF_OWNERS


def test_panels_read_only_recorded_series_those_of_gpugauge_itself_and_hardware_that_is_not_normalized():
    own = {name for name in EXPOSED if name.startswith("gpugauge_")}
    hardware = set(re.findall(r"DCGM_FI_\w+", Path("dashboards/hardware.py").read_text()))
    for where, expression in dict(panel_expressions()).items():
        names = {name for name, _ in selectors(expression)}
        assert {name for name in names if name.startswith("DCGM_")} <= hardware, where
        assert names - hardware <= RECORDED | own | {f"{name}_count" for name in own} | FOREIGN.keys(), where


def test_a_hardware_quantity_is_read_under_every_name_of_its_field_that_has_the_same_unit():
    """A later name may have another unit: those of clocks, NVLink and PCIe do."""
    text = Path("dashboards/hardware.py").read_text()
    by_number = {}
    for name, each in fields_by_name().items():
        by_number.setdefault(each.id, set()).add(name)
    for name in set(re.findall(r"DCGM_FI_\w+", text)):
        field = fields_by_name()[name]
        if field.unit in {"count", "rows", "bool", "enum"}:
            names = {each for each in by_number[field.id] if each.startswith("DCGM_")}
            assert names <= set(re.findall(r"DCGM_FI_\w+", text)), name


def test_series_that_alerts_query_in_their_texts_are_recorded():
    for where, rule in RULES.items():
        if isinstance(rule, Alert):
            text = rule.description + rule.summary + "".join(value for _, value in rule.annotations)
            asked = set(re.findall(r"\w+:\w+:\w+", text))
            assert asked <= RECORDED, where
