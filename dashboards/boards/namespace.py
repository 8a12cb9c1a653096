"""The Grafana dashboard `gpu-namespace`: what the pods of a namespace have allocated, use, and are pending for."""

from dashboards import queries as q
from dashboards.boards import alert_rows
from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, TYPE_COLUMN, WORKLOAD_COLUMN, count, share
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER, NAMESPACE, WATCHER_UP
from dashboards.states import NONE_OR_IDLE, NONE_OR_SOME
from dashboards.style import Color, Column, Dashboard, Query, Unit, ValueState

POD_NAMESPACE = f'{CLUSTER}, gpu_namespace=~"$namespace"'
"""For series of exporters and of the watcher, which no scrape target renames."""
QUOTA = (ValueState(0, "", Color.OK), ValueState(0.9, "", Color.WARNING))
WORKLOADS = "Workloads with GPUs"
PENDING = "Pending workloads of the namespace"


def _list(panel: str) -> str:
    return panel_link("gpu-namespace", "namespace", panel=panel)


NOW = PanelRow(
    "Now",
    sized(
        4,
        4,
        stat(
            "Allocated",
            "GPUs and MIG devices that are allocated to pods of the namespace; a shared one counts once per pod. No "
            "data: none is, or the allocation is unknown.",
            Unit.COUNT,
            f"sum(namespace:gpu_devices:sum{{{NAMESPACE}}})",
            link=_list(WORKLOADS),
        ),
        stat(
            "Utilization",
            "Mean activity of the GPUs and MIG devices that the pods have alone. No data: there are none, or their "
            "activity is unknown.",
            Unit.RATIO,
            f"sum(namespace:gpu_busy:sum{{{NAMESPACE}}}) / sum(namespace:gpu_busy:count{{{NAMESPACE}}})",
            link=_list(WORKLOADS),
        ),
        stat(
            "Allocated but idle",
            q.ALLOCATED_BUT_IDLE + " Only those that one pod has alone.",
            Unit.COUNT,
            f"sum(namespace:gpu_idle_devices:count15m{{{NAMESPACE}}})",
            NONE_OR_IDLE,
            _list(WORKLOADS),
        ),
        stat(
            "Quota used",
            "Largest share of a quota for GPUs that is used. From 90 % on, the next pod may be refused. No data: the "
            "namespace has no quota, or the watcher does not answer.",
            Unit.RATIO,
            f"""
            max(
              max by (cluster, gpu_namespace, resource) (gpugauge_quota_used{{{POD_NAMESPACE}}})
              / max by (cluster, gpu_namespace, resource) (gpugauge_quota_hard{{{POD_NAMESPACE}}} > 0)
            )
            """,
            QUOTA,
            panel_link("gpu-capacity", panel="Quota by namespace"),
        ),
        stat(
            "Pending pods",
            "GPU pods of the namespace that could be scheduled and do not run. No data means that the watcher does not "
            "answer.",
            Unit.COUNT,
            f"sum(workload:gpu_pending_pods:count{{{NAMESPACE}}}) or {WATCHER_UP}",
            NONE_OR_SOME,
            _list(PENDING),
        ),
        stat(
            "Firing alerts",
            "GPU alerts of the namespace that fire now. No data means that the rules are not loaded.",
            Unit.COUNT,
            f'count(ALERTS{{{q.FIRING}, namespace=~"$namespace"}}) or {q.RULES_LOADED}',
            NONE_OR_SOME,
            _list("Alerts of the namespace"),
        ),
    ),
)

TIME = PanelRow(
    "Allocated and busy",
    sized(
        12,
        8,
        graph(
            "Allocated and busy GPUs",
            "Allocated GPUs and MIG devices, and the sum of the activity of those that a pod has alone. The gap is "
            "what was allocated and not used; shared devices, whose activity is not known per pod, widen it.",
            Unit.AMOUNT,
            Query(f"sum(namespace:gpu_devices:sum{{{NAMESPACE}}})", "allocated", Color.IDLE),
            Query(f"sum(namespace:gpu_busy:sum{{{NAMESPACE}}})", "busy", Color.BUSY),
        ),
        graph(
            "Busy GPUs by workload",
            "Sum of the activity of the GPUs and MIG devices of each workload.",
            Unit.AMOUNT,
            Query(f"sum by (workload) (workload:gpu_busy:sum{{{NAMESPACE}}})", "{{workload}}"),
            stacked=True,
        ),
    ),
)

_RANK = f"workload:gpu_devices:sum{{{NAMESPACE}}}"


def _rows(expression: str) -> str:
    return q.of_first_rows(expression, q.WORKLOAD, _RANK)


_BOUND = f"""
sum by (le) (
  max by (cluster, gpu_namespace, resource, size, le) (
    increase(gpugauge_pod_scheduling_wait_seconds_bucket{{{POD_NAMESPACE}}}[1h])
  )
)
"""

LISTS = PanelRow(
    "Workloads",
    (
        SizedPanel(
            table(
                WORKLOADS,
                "One row per workload with allocated GPUs or MIG devices: the mean activity of those that are not "
                "shared, now and over the time range, how many were idle over 15 minutes, and the GPU-hours of the "
                "time range that were allocated and not used. Most GPUs first, at most 100 rows.",
                (
                    NAMESPACE_COLUMN,
                    WORKLOAD_COLUMN,
                    TYPE_COLUMN,
                    CLUSTER_COLUMN,
                    count("Value #A", "Allocated"),
                    share("Value #B", "Busy"),
                    share("Value #C", "Busy in the range"),
                    count("Value #D", "Idle", 70),
                    Column("Value #E", "GPU-hours not used", Unit.HOURS, width=150),
                ),
                _rows(_RANK),
                _rows(f"workload:gpu_busy:sum{{{NAMESPACE}}} / workload:gpu_busy:count{{{NAMESPACE}}}"),
                _rows(
                    f"sum_over_time(workload:gpu_busy:sum{{{NAMESPACE}}}[$__range]) "
                    f"/ sum_over_time(workload:gpu_busy:count{{{NAMESPACE}}}[$__range])"
                ),
                _rows(f"sum by ({q.WORKLOAD}) (workload:gpu_idle_devices:count15m{{{NAMESPACE}}})"),
                _rows(q.over_range("workload:gpu_unused_hours:sum5m", NAMESPACE)),
                sort="Allocated",
            ),
            24,
            9,
        ),
        SizedPanel(
            table(
                PENDING,
                "Workloads of the namespace with GPU pods that could be scheduled and do not run: how long the oldest "
                "pod has been pending, and why. The runbook says what to do for each reason. At most 100 rows.",
                (
                    NAMESPACE_COLUMN,
                    WORKLOAD_COLUMN,
                    TYPE_COLUMN,
                    CLUSTER_COLUMN,
                    Column("reason", "Reason of the oldest", width=190),
                    Column("Value #A", "Pending for", Unit.DURATION, width=140),
                    count("Value #B", "Pods", 70),
                ),
                f"topk(100, {q.oldest_pending(NAMESPACE)})",
                q.of_first_rows(
                    f"workload:gpu_pending_pods:count{{{NAMESPACE}}}",
                    q.WORKLOAD,
                    q.oldest_pending(NAMESPACE),
                ),
                sort="Pending for",
            ),
            14,
            8,
        ),
        SizedPanel(
            graph(
                "Wait until scheduled, by quantile",
                "How long GPU pods of the last hour waited from when they could be scheduled until they were bound. No "
                "data: none was bound.",
                Unit.SECONDS,
                *(
                    Query(
                        f"histogram_quantile({quantile}, {_BOUND})",
                        name,
                        color,
                    )
                    for quantile, name, color in ((0.5, "p50", Color.BUSY), (0.95, "p95", Color.WARNING))
                ),
            ),
            10,
            8,
        ),
    ),
)

ALERTS = PanelRow(
    "Alerts and exemptions",
    (
        SizedPanel(alert_rows.firing("Alerts of the namespace", NAMESPACE), 16, 7),
        SizedPanel(alert_rows.exemptions("Exemptions of the namespace", POD_NAMESPACE), 8, 7),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-namespace",
    title="GPU usage by namespace",
    description=(
        "The GPUs that are allocated to the workloads of a namespace, how busy they are, and which are pending."
    ),
    tags=("namespace",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to choose from.", "label_values(cluster:gpus:count, cluster)"),
        variable(
            "namespace",
            "Namespace",
            "Namespaces with GPU pods, running or pending.",
            f"label_values({q.WITH_NAMESPACES}, namespace)",
            all=False,
        ),
    ),
    rows=(NOW, TIME, LISTS, ALERTS),
    since="now-24h",
)
