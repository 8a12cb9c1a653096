"""The Grafana dashboard `gpu-weekly`: GPU-hours, utilization, waste, waiting and faults of seven days, for two pages.

Sums are over the values of recorded series at even steps, so time without data counts as nothing: Coverage says how
much of the time there is.
"""

from dashboards import queries as q
from dashboards.boards.device_tables import XID_COLUMN
from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.panels import datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER, GPU
from dashboards.style import TABLE_ROWS, Color, Column, Dashboard, Query, Unit

STEPS = "[$__range:$__interval]"
HOURS_OF_A_STEP = "$__interval_ms / 3600000"


def _hours(series: str, offset: str = "") -> str:
    """The sum over the time range, of all chosen clusters: GPUs become GPU-hours, watts watt-hours."""
    return f"(sum(sum_over_time({series}{{{CLUSTER}}}{STEPS}{offset})) * {HOURS_OF_A_STEP})"


def _of_namespace(series: str) -> str:
    return f"(sum by (cluster, namespace) (sum_over_time({series}{{{CLUSTER}}}{STEPS})) * {HOURS_OF_A_STEP})"


IDLE = _of_namespace("namespace:gpu_idle_devices:count15m")
_WAITS = f"sum by (le) (cluster:gpu_pod_scheduling_wait_seconds_bucket:increase1h{{{CLUSTER}}})"
_XIDS = f"last_over_time(gpugauge_xid_last_timestamp_seconds{{{CLUSTER}}}[$__range])"
ALLOCATED = _hours("cluster:gpus_allocated:count")
USED_SHARE = f"{_hours('cluster:gpu_allocated_busy:sum')} / {_hours('cluster:gpu_allocated_busy:count')}"
USED_SHARE_BEFORE = (
    f"{_hours('cluster:gpu_allocated_busy:sum', ' offset 7d')} "
    f"/ {_hours('cluster:gpu_allocated_busy:count', ' offset 7d')}"
)

SUMS = PanelRow(
    "Sums",
    (
        *sized(
            4,
            4,
            stat(
                "GPU-hours allocated",
                "Hours in which GPUs were allocated to a pod, as a whole or in part.",
                Unit.COUNT,
                ALLOCATED,
            ),
            stat(
                "Allocated of all",
                "GPU-hours allocated as a share of all GPU-hours.",
                Unit.RATIO,
                f"{ALLOCATED} / {_hours('cluster:gpus:count')}",
            ),
            stat(
                "Busy while allocated",
                "Mean activity of allocated GPUs and MIG devices.",
                Unit.RATIO,
                USED_SHARE,
            ),
            stat(
                "Busy, week before",
                "The same, seven days earlier. No data: the store does not have them.",
                Unit.RATIO,
                USED_SHARE_BEFORE,
            ),
            stat(
                "Energy",
                "Energy that all GPUs have drawn: the mean power of each hour, added up.",
                Unit.WATT_HOURS,
                _hours("cluster:gpu_power_watts:sum"),
            ),
            stat(
                "Coverage",
                "Share of the time range of which there are data. Sums are too small by what is missing.",
                Unit.RATIO,
                f"max(count_over_time(cluster:gpus:count{{{CLUSTER}}}{STEPS})) "
                f"/ scalar(count_over_time(vector(1){STEPS}))",
            ),
        ),
        SizedPanel(
            graph(
                "Allocated and busy, and a week before",
                "Allocated GPUs, and the sum of the activity of allocated GPUs and MIG devices. Dashed: seven days "
                "earlier.",
                Unit.COUNT,
                Query(q.total("cluster:gpus_allocated:count"), "allocated", Color.IDLE),
                Query(q.total("cluster:gpu_allocated_busy:sum"), "busy", Color.BUSY),
                Query(
                    f"sum(cluster:gpus_allocated:count{{{CLUSTER}}} offset 1w)",
                    "allocated, before",
                    Color.IDLE,
                    dashed=True,
                ),
                Query(
                    f"sum(cluster:gpu_allocated_busy:sum{{{CLUSTER}}} offset 1w)",
                    "busy, before",
                    Color.BUSY,
                    dashed=True,
                ),
            ),
            24,
            8,
        ),
    ),
)

WASTE = PanelRow(
    "Namespaces",
    (
        SizedPanel(
            table(
                "Namespaces by idle GPU-hours",
                "Hours in which devices were allocated to a namespace and idle (below 1 % over 15 minutes), most "
                "first; hours allocated; and the mean activity. Shared devices count as allocated only. The first "
                f"{TABLE_ROWS} by each of them.",
                (
                    NAMESPACE_COLUMN,
                    CLUSTER_COLUMN,
                    count("Value #A", "Idle hours", 110),
                    count("Value #B", "Allocated hours", 130),
                    Column("Value #C", "Busy", Unit.RATIO, bar=True),
                ),
                f"topk({TABLE_ROWS}, {IDLE})",
                f"topk({TABLE_ROWS}, {_of_namespace('namespace:gpu_devices:sum')})",
                f"topk({TABLE_ROWS}, {_of_namespace('namespace:gpu_busy:sum')} "
                f"/ {_of_namespace('namespace:gpu_busy:count')})",
                sort="Idle hours",
            ),
            12,
            9,
        ),
        SizedPanel(
            graph(
                "Wait until GPU pods were bound",
                "How long GPU pods waited from when they could be scheduled until they had a node, in the hour before: "
                "half of them longer than the median, one in twenty longer than the other line.",
                Unit.SECONDS,
                Query(f"histogram_quantile(0.5, {_WAITS})", "median", Color.BUSY),
                Query(f"histogram_quantile(0.95, {_WAITS})", "one in twenty waited longer", Color.WARNING),
            ),
            12,
            9,
        ),
    ),
)

FAULTS = PanelRow(
    "Faults and alerts",
    (
        SizedPanel(
            table(
                "GPUs with XIDs, by code",
                "On how many GPUs each XID came within the time range. The list of GPUs is on the dashboard of "
                "hardware health.",
                (XID_COLUMN, count("Value", "GPUs", 90)),
                f"topk({TABLE_ROWS}, count by (xid) (group by ({GPU}, xid) ({_XIDS} > time() - $__range_s)))",
                sort="GPUs",
            ),
            12,
            8,
        ),
        SizedPanel(
            table(
                "Alerts that fired",
                "Which alerts fired within the time range, and on how many objects, most first.",
                (
                    Column("severity", "Severity", width=110),
                    Column("alertname", "Alert"),
                    count("Value", "Objects", 100),
                ),
                f"topk({TABLE_ROWS}, count by (alertname, severity) (group by (alertname, severity, area, cluster, "
                f"node, namespace, workload, pod) (count_over_time(ALERTS{{{q.FIRING}}}[$__range]))))",
                sort="Objects",
            ),
            12,
            8,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-weekly",
    title="GPU weekly report",
    description="GPU-hours, utilization, idle namespaces, waiting, faults and alerts of the last seven days.",
    tags=("report",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to count.", "label_values(cluster:gpus:count, cluster)"),
    ),
    rows=(SUMS, WASTE, FAULTS),
    since="now-7d",
    refresh="",
)
