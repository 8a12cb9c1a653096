"""Tables of firing alerts, and of exemptions from alerts, of what a dashboard has chosen."""

from typing import Any

from dashboards import queries as q
from dashboards.columns import CLUSTER_COLUMN, NODE_COLUMN
from dashboards.panels import table
from dashboards.queries import CLUSTER
from dashboards.style import TABLE_ROWS, Column, Unit

LABELS = "alertname, severity, area, cluster, node, namespace, workload, pod"


def firing(title: str, selection: str) -> Any:
    """GPU alerts that fire now, the newest first. `selection` is the inner part of a selector."""
    return table(
        title,
        "GPU alerts that fire now, and since when their condition has been true. The runbook explains each of them. "
        "The "
        f"newest first, at most {TABLE_ROWS} rows; empty when none fires.",
        (
            Column("severity", "Severity", width=100),
            Column("alertname", "Alert", width=190),
            Column("area", "Area", width=110),
            Column("namespace", "Namespace"),
            Column("workload", "Workload"),
            Column("pod", "Pod"),
            CLUSTER_COLUMN,
            NODE_COLUMN,
            Column("Value", "Since", Unit.AGE, width=140),
        ),
        f"""
        topk({TABLE_ROWS},
          max by ({LABELS}) (ALERTS_FOR_STATE{{component="gpu", severity!="none", {selection}}}) * 1000
          and on ({LABELS}) ALERTS{{{q.FIRING}}}
        )
        """,
        sort="Since",
    )


def exemptions(title: str, selection: str) -> Any:
    """Exemptions in force. `selection` is the inner part of a selector of `gpu_namespace`."""
    pods = f"max by (cluster, gpu_namespace, gpu_pod, alert, until) (gpugauge_pod_alert_exemption{{{selection}}})"
    namespaces = f"max by (cluster, gpu_namespace, alert, until) (gpugauge_namespace_alert_exemption{{{selection}}})"
    return table(
        title,
        "Pods and namespaces that are exempt from an alert, and until when. An exemption that has ended is not in "
        "force "
        f"and not in the list. At most {TABLE_ROWS} rows of either kind.",
        (
            Column("gpu_namespace", "Namespace"),
            Column("gpu_pod", "Pod"),
            CLUSTER_COLUMN,
            Column("alert", "Alert"),
            Column("until", "Until", width=120),
        ),
        f"topk({TABLE_ROWS}, {pods}) or topk({TABLE_ROWS}, {namespaces})",
    )


OF_CLUSTERS = firing("Alerts that fire", CLUSTER)
