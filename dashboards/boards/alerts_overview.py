"""The Grafana dashboard `gpu-alerts`: what fires, since when, what is about to, and which alerts are noisy."""

from typing import Any

from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, NODE_COLUMN, WORKLOAD_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.panels import bars, datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER
from dashboards.states import NONE_OR_CRITICAL, NONE_OR_SOME
from dashboards.style import TABLE_ROWS, Color, Column, Dashboard, Query, Unit, Word

CHOSEN = f'component="gpu", severity!="none", severity=~"$severity", area=~"$area", {CLUSTER}'
_LABELS = "alertname, severity, area, cluster, node, namespace, workload, pod"
_RULES_LOADED = "0 * max(global:gpugauge_threshold:value)"
"""Zero while the rules are loaded, else nothing."""
SEVERITY = Column(
    "severity",
    "Severity",
    words=(Word("critical", "critical", Color.CRITICAL), Word("warning", "warning", Color.WARNING)),
    width=100,
)


def _alerts(state: str) -> str:
    return f'ALERTS{{alertstate="{state}", {CHOSEN}}}'


def _count(severity: str) -> str:
    chosen = f'component="gpu", alertstate="firing", severity="{severity}", area=~"$area", {CLUSTER}'
    return f"count(ALERTS{{{chosen}}}) or {_RULES_LOADED}"


def _list(title: str, description: str, state: str) -> Any:
    return table(
        title,
        f"{description} The newest first, at most {TABLE_ROWS} rows.",
        (
            SEVERITY,
            Column("alertname", "Alert", width=230),
            Column("area", "Area", width=100),
            NAMESPACE_COLUMN,
            WORKLOAD_COLUMN,
            Column("pod", "Pod"),
            NODE_COLUMN,
            CLUSTER_COLUMN,
            Column("Value", "Since", Unit.AGE, width=140),
        ),
        f"topk({TABLE_ROWS}, max by ({_LABELS}) (ALERTS_FOR_STATE{{{CHOSEN}}}) * 1000 "
        f"and on ({_LABELS}) {_alerts(state)})",
        sort="Since",
    )


NOW = PanelRow(
    "Now",
    sized(
        6,
        4,
        stat(
            "Critical alerts",
            "Critical GPU alerts that fire now. No data means that the rules are not loaded.",
            Unit.COUNT,
            _count("critical"),
            NONE_OR_CRITICAL,
        ),
        stat(
            "Warnings",
            "GPU alerts of severity warning that fire now. No data means that the rules are not loaded.",
            Unit.COUNT,
            _count("warning"),
            NONE_OR_SOME,
        ),
        stat(
            "About to fire",
            "Alerts whose condition is true, and not yet for as long as they require.",
            Unit.COUNT,
            f"count({_alerts('pending')}) or {_RULES_LOADED}",
        ),
        stat(
            "Longest firing",
            "How long the condition of the alert that fires longest has been true. Long ones are either ignored or "
            "wrong.",
            Unit.DURATION,
            f"time() - min(max by ({_LABELS}) (ALERTS_FOR_STATE{{{CHOSEN}}}) and on ({_LABELS}) {_alerts('firing')})",
        ),
    ),
)

LISTS = PanelRow(
    "Alerts",
    (
        SizedPanel(
            _list(
                "Firing",
                "GPU alerts that fire now, and since when their condition has been true. The runbook explains each.",
                "firing",
            ),
            24,
            8,
        ),
        SizedPanel(
            _list(
                "About to fire, list", "GPU alerts whose condition has not yet been true for long enough.", "pending"
            ),
            24,
            5,
        ),
    ),
)

HISTORY = PanelRow(
    "History",
    (
        *sized(
            12,
            8,
            graph(
                "Firing by severity",
                "How many GPU alerts fired, critical ones and warnings on top of each other.",
                Unit.COUNT,
                Query(f"count by (severity) ({_alerts('firing')})", "{{severity}}"),
                stacked=True,
            ),
            graph(
                "Firing by area",
                "How many GPU alerts fired: efficiency and capacity are for owners, the others for the platform.",
                Unit.COUNT,
                Query(f"count by (area) ({_alerts('firing')})", "{{area}}"),
                stacked=True,
            ),
        ),
        SizedPanel(
            table(
                "Alerts of the time range",
                "Which alerts fired, on how many objects, and on how many at once on average while any did. Many "
                "objects of one alert that nobody acts on: change its threshold, or exempt them.",
                (
                    SEVERITY,
                    Column("alertname", "Alert"),
                    Column("area", "Area", width=110),
                    count("Value #A", "Objects", 100),
                    count("Value #B", "At once", 100),
                ),
                f"topk({TABLE_ROWS}, count by (alertname, severity, area) "
                f"(group by ({_LABELS}) (count_over_time({_alerts('firing')}[$__range]))))",
                f"topk({TABLE_ROWS}, avg_over_time((count by (alertname, severity, area) "
                f"({_alerts('firing')}))[$__range:$__interval]))",
                sort="Objects",
            ),
            12,
            8,
        ),
        SizedPanel(
            bars(
                "Share of the time range in which an alert fired",
                "Of each alert, the share of the chosen time range in which it fired for anything. An alert that "
                "always fires is no alert: correct the cause, or its threshold.",
                Unit.RATIO,
                Query(
                    "topk(15, count_over_time((count by (alertname) "
                    f"({_alerts('firing')}))[$__range:$__interval]) / on () group_left () "
                    f"count_over_time(vector(1)[$__range:$__interval]))",
                    "{{alertname}}",
                ),
            ),
            12,
            8,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-alerts",
    title="GPU alerts",
    description="GPU alerts that fire or are about to, since when, and which of them fire most.",
    tags=("alerts",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to show.", "label_values(cluster:gpus:count, cluster)"),
        variable(
            "severity",
            "Severity",
            "Severities to show.",
            f'label_values(ALERTS{{component="gpu", severity!="none", {CLUSTER}}}, severity)',
        ),
        variable("area", "Area", "Areas to show.", f'label_values(ALERTS{{component="gpu", {CLUSTER}}}, area)'),
    ),
    rows=(NOW, LISTS, HISTORY),
    since="now-24h",
)
