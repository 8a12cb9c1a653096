"""Writes groups of rules as text: a file for Prometheus, or a PrometheusRule for the Prometheus Operator."""

import re
from typing import Any

from alerts.rules.promql import formatted
from alerts.rules.rule import LINKS, Alert, Group, Links, Notify, Recording, Rule
from alerts.rules.texts import expanded
from alerts.rules.yaml_text import HEADER, dump

_NAMESPACE = re.compile(r"\bnamespace\b")

NO_TEAM = "none"

NOTIFY_OF_A_PAGE = (
    """{{ with printf "last_over_time(gpugauge_node_maintenance{reason='planned',cluster=%q,node=%q}[20m])" """
    """$labels.cluster $labels.node | query }}digest{{ else }}page{{ end }}"""
)
"""The label of an alert with notify="page". It asks twenty minutes back, so that an outage of the watcher during
planned maintenance does not page; an alert without a node always pages."""

TEAM = (
    """{{ with printf "last_over_time(gpugauge_namespace_info{team!='',cluster=%q,gpu_namespace=%q}[1h])" """
    """$labels.cluster $labels.namespace | query }}{{ . | first | label "team" }}{{ else }}none{{ end }}"""
)
"""The label `team` of an alert with a namespace: what a label of the namespace says, so that the alert is routed to who
can act. It asks an hour back, so that an outage of the watcher does not make another alert of it. It is never empty:
the series ALERTS would then have the text of the template."""


def rule_file(group: Group, links: Links = LINKS) -> str:
    """Return one group as the text of a file for `rule_files:`."""
    return HEADER + dump({"groups": [_group(group, links)]})


def mimir_rules(groups: tuple[Group, ...], links: Links = LINKS, namespace: str = "gpugauge") -> str:
    """Return the groups as the text of one file for mimirtool, which puts them into that rule namespace."""
    return HEADER + dump({"namespace": namespace, "groups": [_group(group, links) for group in groups]})


def prometheus_rule(groups: tuple[Group, ...], links: Links = LINKS, name: str = "gpugauge") -> str:
    """Return the groups as the text of one PrometheusRule of that name."""
    return HEADER + dump(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": name,
                "labels": {"app.kubernetes.io/name": "gpugauge", "app.kubernetes.io/component": "rules"},
            },
            "spec": {"groups": [_group(group, links) for group in groups]},
        }
    )


def labels_of(alert: Alert) -> dict[str, str]:
    """Return the labels that every instance of the alert has, for routing. Prometheus adds those of the expression.

    In planned maintenance of its node an alert that is a page has notify="digest" instead, and where the namespace has
    a team, that is the team.
    """
    return {
        "severity": alert.severity.value,
        "component": "gpu",
        "area": alert.area.value,
        "family": alert.family.value,
        "notify": alert.notify.value,
        **({"team": NO_TEAM} if _NAMESPACE.search(alert.expr) else {}),
    }


def annotations_of(alert: Alert, links: Links = LINKS) -> dict[str, str]:
    """Return the annotations of an alert. Each alert is a heading in the runbook."""
    texts = {"summary": alert.summary, "description": alert.description, **dict(alert.annotations)}
    return {
        **{name: expanded(text) for name, text in texts.items()},
        "runbook_url": f"{links.runbook}#{alert.name.lower()}",
        "dashboard_url": f"{links.grafana}{_dashboard(alert)}",
    }


def _dashboard(alert: Alert) -> str:
    chosen = "&".join(f"var-{name}={{{{ $labels.{name} | urlquery }}}}" for name in alert.dashboard.variables)
    return f"/d/{alert.dashboard}?{chosen}"


def labels_in_file(alert: Alert) -> dict[str, str]:
    """Return the labels as they are written: some are templates, which Prometheus fills in for each instance."""
    return {
        **labels_of(alert),
        **({"notify": NOTIFY_OF_A_PAGE} if alert.notify is Notify.PAGE else {}),
        **({"team": TEAM} if _NAMESPACE.search(alert.expr) else {}),
    }


def _group(group: Group, links: Links) -> dict[str, Any]:
    rules = [_rule(rule, links) for rule in group.rules]
    return {"name": group.name, "interval": f"{group.interval}s", "rules": rules}


def _rule(rule: Rule, links: Links) -> dict[str, Any]:
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
                **({"for": rule.for_} if rule.for_ else {}),
                **({"keep_firing_for": rule.keep_firing_for} if rule.keep_firing_for else {}),
                "labels": labels_in_file(rule),
                "annotations": annotations_of(rule, links),
            }
