"""Writes groups of rules as text: a file for Prometheus, or a PrometheusRule for the Prometheus Operator."""

from typing import Any

from alerts.rules.promql import formatted
from alerts.rules.rule import RUNBOOK, Alert, Group, Recording, Rule
from alerts.rules.yaml_text import HEADER, dump


def rule_file(group: Group, runbook: str = RUNBOOK) -> str:
    """Return one group as the text of a file for `rule_files:`."""
    return HEADER + dump({"groups": [_group(group, runbook)]})


def prometheus_rule(groups: tuple[Group, ...], runbook: str = RUNBOOK, name: str = "gpugauge") -> str:
    """Return the groups as the text of one PrometheusRule of that name."""
    return HEADER + dump(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": name,
                "labels": {"app.kubernetes.io/name": "gpugauge", "app.kubernetes.io/component": "rules"},
            },
            "spec": {"groups": [_group(group, runbook) for group in groups]},
        }
    )


def labels_of(alert: Alert) -> dict[str, str]:
    """Return the labels that every instance of the alert has, for routing. Prometheus adds those of the expression."""
    return {
        "severity": alert.severity.value,
        "component": "gpu",
        "area": alert.area.value,
        "notify": alert.notify.value,
    }


def annotations_of(alert: Alert, runbook: str) -> dict[str, str]:
    """Return the annotations of an alert. `runbook` is the address of the runbook; each alert is a heading in it."""
    return {
        "summary": alert.summary,
        "description": alert.description,
        **dict(alert.annotations),
        "runbook_url": f"{runbook}#{alert.name.lower()}",
    }


def _group(group: Group, runbook: str) -> dict[str, Any]:
    rules = [_rule(rule, runbook) for rule in group.rules]
    return {"name": group.name, "interval": f"{group.interval}s", "rules": rules}


def _rule(rule: Rule, runbook: str) -> dict[str, Any]:
    match rule:
        case Recording():
            return {
                "record": rule.name,
                "expr": formatted(rule.expr),
                **({"labels": dict(rule.labels)} if rule.labels else {}),
            }
        case Alert():
            return {
                "alert": rule.name,
                "expr": formatted(rule.expr),
                "for": rule.for_,
                **({"keep_firing_for": rule.keep_firing_for} if rule.keep_firing_for else {}),
                "labels": labels_of(rule),
                "annotations": annotations_of(rule, runbook),
            }
