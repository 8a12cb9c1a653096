"""Rows of the Grafana dashboard `gpu-fleet` that list workloads: pending ones, and those with low utilization."""

from dashboards import queries as q
from dashboards.boards import pending_idle
from dashboards.columns import (
    CLUSTER_COLUMN,
    NAMESPACE_COLUMN,
    NODE_COLUMN,
    POD_COLUMN,
    TYPE_COLUMN,
    WORKLOAD_COLUMN,
)
from dashboards.layout import PanelRow, SizedPanel
from dashboards.links import panel_link
from dashboards.panels import bars, graph, table
from dashboards.queries import CLUSTER
from dashboards.style import TABLE_ROWS, Column, Query, Unit

_BELOW = q.below_threshold("<")
_LOW = f"""
topk({TABLE_ROWS}, pod:gpu_devices:count{{{CLUSTER}}} and on ({q.POD}) ({_BELOW}))
"""

LOW_UTILIZATION = PanelRow(
    "Low utilization",
    (
        SizedPanel(
            table(
                "Low-utilization pods",
                "Pods whose GPUs were busy for a smaller share of 15 minutes than their threshold: for training the "
                "override of the pod or 30 %, for an unknown workload class 1 %, unless other thresholds are recorded; "
                "none for serving and interactive. Ask the owner, or set an override or an exemption as the runbook "
                "describes. Most GPUs first, at most 100 rows.",
                (
                    NAMESPACE_COLUMN,
                    WORKLOAD_COLUMN,
                    TYPE_COLUMN,
                    POD_COLUMN,
                    CLUSTER_COLUMN,
                    NODE_COLUMN,
                    Column("Value #A", "Busy, 15 min", Unit.RATIO, bar=True, width=150),
                    Column("Value #B", "Threshold", Unit.RATIO, width=90),
                    Column("Value #C", "GPUs", Unit.COUNT, width=70),
                ),
                q.of_pod(f"({_BELOW}) and on ({q.POD}) {_LOW}"),
                q.of_pod(f"pod:gpu_low_utilization_threshold:ratio{{{CLUSTER}}} and on ({q.POD}) ({_LOW})"),
                q.of_pod(_LOW),
                sort="GPUs",
            ),
            18,
            8,
        ),
        SizedPanel(
            bars(
                "Idle GPUs by namespace",
                "GPUs and MIG devices that are allocated to one pod of the namespace and were idle over 15 minutes. "
                "Shared devices are left out: their activity is not known per pod.",
                Unit.COUNT,
                Query(
                    f"sort_desc(topk(20, sum by (namespace) (namespace:gpu_idle_devices:count15m{{{CLUSTER}}}) > 0))",
                    "{{namespace}}",
                ),
                link=panel_link("gpu-namespace", namespace="namespace"),
            ),
            6,
            8,
        ),
    ),
)

_OLDEST = f"topk({TABLE_ROWS}, {q.oldest_pending(CLUSTER)})"

PENDING = PanelRow(
    "Pending and idle",
    (
        SizedPanel(pending_idle.summary("Pending and idle GPUs", CLUSTER, CLUSTER), 24, 8),
        SizedPanel(
            table(
                "Pending workloads",
                "Workloads with GPU pods that could be scheduled and do not run, how long the oldest of them has been "
                "pending, and why. Time with a scheduling gate is not counted. Longest first, at most 100 rows.",
                (
                    NAMESPACE_COLUMN,
                    WORKLOAD_COLUMN,
                    TYPE_COLUMN,
                    CLUSTER_COLUMN,
                    Column("reason", "Reason", width=190),
                    Column("pod", "Oldest pod"),
                    Column("Value #A", "Pending for", Unit.DURATION, width=140),
                    Column("Value #B", "Pods", Unit.COUNT, width=70),
                ),
                _OLDEST,
                # x ^ 0 is 1: the value of the info series is an age in seconds.
                f"workload:gpu_pending_pods:count{{{CLUSTER}}} * on ({q.WORKLOAD}) group_left (pod, reason) "
                f"({_OLDEST} ^ 0)",
                sort="Pending for",
            ),
            14,
            8,
        ),
        SizedPanel(
            graph(
                "Pending GPUs by reason",
                "GPUs that pending pods ask for, by why they do not run. If most are pending for lack of GPUs, more "
                "GPUs or better packing help; selectors and taints are for the owner of the workload to correct.",
                Unit.COUNT,
                Query(f"sum by (reason) (cluster:gpu_pending_devices_by_reason:sum{{{CLUSTER}}})", "{{reason}}"),
                stacked=True,
            ),
            10,
            8,
        ),
    ),
)
