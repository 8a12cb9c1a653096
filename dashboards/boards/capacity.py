"""The Grafana dashboard `gpu-capacity`: pending pods and why, idle and free GPUs, quotas, and what is not usable.

Its row `Pending and idle` is in `pending_idle.py`, quotas and the trend are in `capacity_quota.py`.
"""

from dashboards import queries as q
from dashboards.boards import capacity_quota, pending_idle
from dashboards.boards.pending_idle import ASKED_FOR, CHOSEN
from dashboards.columns import CLUSTER_COLUMN, NODE_COLUMN, RESOURCE_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import bars, datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER, WATCHER_UP
from dashboards.states import NONE_OR_IDLE, NONE_OR_SOME
from dashboards.style import Color, Column, Dashboard, Query, Unit

STRANDED = "Free GPUs that cannot be used"


def _list(panel: str) -> str:
    return panel_link("gpu-capacity", "model", "resource", panel=panel)


NOW = PanelRow(
    "Now",
    sized(
        4,
        4,
        stat(
            "Pending GPUs",
            "GPUs and MIG devices that pending pods ask for. No data means that the watcher does not answer.",
            Unit.COUNT,
            f"sum(model:gpu_pending_devices:sum{{{ASKED_FOR}}}) or {WATCHER_UP}",
            NONE_OR_SOME,
            _list(pending_idle.TITLE),
        ),
        stat(
            "Longest pending",
            "How long the workload that has been pending longest could have been scheduled. No data: none is pending, "
            "or the watcher does not answer; Pending GPUs tells which.",
            Unit.DURATION,
            f"time() - min(gpugauge_pending_oldest_timestamp_seconds{{{CLUSTER}}})",
            link=_list("Pending workloads by resource and model"),
        ),
        stat(
            "Allocated but idle",
            q.ALLOCATED_BUT_IDLE + " Only those that one pod has alone.",
            Unit.COUNT,
            f"sum(model:gpu_idle_devices:count15m{{{CHOSEN}}}) or 0 * {q.total('cluster:gpu_idle_devices:count15m')}",
            NONE_OR_IDLE,
            _list("Idle workloads by resource and model"),
        ),
        stat(
            "Free GPUs",
            "Allocatable GPUs and MIG devices that no pod requests, on nodes to which pods can be scheduled. No data "
            "means that the watcher does not answer.",
            Unit.COUNT,
            f"sum(model:gpu_free:sum{{{CHOSEN}}})",
            link=_list(pending_idle.TITLE),
        ),
        stat(
            "Largest free block",
            "The most GPUs that are free on one node: a pod that asks for more is pending, however many are free "
            "altogether.",
            Unit.COUNT,
            f"max(gpugauge_largest_free_block_devices{{{CHOSEN}}})",
            link=_list(pending_idle.TITLE),
        ),
        stat(
            "Stranded GPUs",
            "Free GPUs that no pod can use, because their node has too little CPU or memory left, or no place for a "
            "pod.",
            Unit.COUNT,
            f"""
            sum(max by (cluster, node, resource) (gpugauge_node_gpu_stranded{{{CLUSTER}, resource=~"$resource"}}))
            or {WATCHER_UP}
            """,
            NONE_OR_SOME,
            _list(STRANDED),
        ),
    ),
)

QUEUE = PanelRow(
    "Queue",
    sized(
        8,
        8,
        graph(
            "Pending GPUs by reason",
            "GPUs that pending pods ask for, by why they do not run. For lack of GPUs, more GPUs or fewer idle ones "
            "help; selectors, taints and quotas are for the owner of the workload to correct.",
            Unit.COUNT,
            Query(f"sum by (reason) (cluster:gpu_pending_devices_by_reason:sum{{{CLUSTER}}})", "{{reason}}"),
            stacked=True,
        ),
        graph(
            "Wait until scheduled",
            "How long GPU pods of the last hour waited from when they could be scheduled until they were bound: half "
            "of them no longer than p50, 19 of 20 no longer than p95. No data: none was bound.",
            Unit.SECONDS,
            *(
                Query(
                    f"histogram_quantile({quantile}, sum by (le) "
                    f"(cluster:gpu_pod_scheduling_wait_seconds_bucket:increase1h{{{CLUSTER}}}))",
                    name,
                    color,
                )
                for quantile, name, color in ((0.5, "p50", Color.BUSY), (0.95, "p95", Color.WARNING))
            ),
        ),
        bars(
            "Longest pending by namespace",
            "The 20 namespaces of which a pod has been pending longest.",
            Unit.DURATION,
            Query(
                f"""
                topk(20, max by (gpu_namespace) (
                  time() - gpugauge_pending_oldest_timestamp_seconds{{{CLUSTER}}}
                ))
                """,
                "{{gpu_namespace}}",
            ),
            link=panel_link("gpu-namespace", namespace="gpu_namespace"),
        ),
    ),
)

SUPPLY = PanelRow(
    "Free and not usable",
    (
        SizedPanel(
            graph(
                "Free GPUs and idle GPUs",
                "GPUs and MIG devices that no pod requests on nodes to which pods can be scheduled, those that are "
                "allocated and idle, and those that pending pods ask for.",
                Unit.COUNT,
                Query(f"sum(model:gpu_free:sum{{{CHOSEN}}})", "free", Color.OK),
                Query(f"sum(model:gpu_idle_devices:count15m{{{CHOSEN}}})", "allocated, idle", Color.IDLE),
                Query(f"sum(model:gpu_pending_devices:sum{{{ASKED_FOR}}})", "pending", Color.WARNING),
            ),
            8,
            8,
        ),
        SizedPanel(
            table(
                STRANDED,
                "Free GPUs that no pod can use, and what their node is short of. Move pods without GPUs away, or limit "
                "their CPU and memory on GPU nodes. Most first, at most 100 rows.",
                (
                    NODE_COLUMN,
                    CLUSTER_COLUMN,
                    RESOURCE_COLUMN,
                    Column("blocker", "Short of"),
                    count("Value", "GPUs", 70),
                ),
                f"""
                topk(100, max by (cluster, node, resource, blocker) (
                  gpugauge_node_gpu_stranded{{{CLUSTER}, resource=~"$resource"}}
                ))
                """,
                sort="GPUs",
            ),
            8,
            8,
        ),
        SizedPanel(
            table(
                "Nodes that take no pods",
                "Nodes with GPUs that are cordoned or not ready, their GPUs, and how many of them pods still request. "
                "Most first, at most 100 rows.",
                (NODE_COLUMN, CLUSTER_COLUMN, count("Value #A", "GPUs", 70), count("Value #B", "Requested", 100)),
                *(
                    q.of_first_rows(
                        f"sum by (cluster, node) ({series}{{{CHOSEN}}})",
                        "cluster, node",
                        f"sum by (cluster, node) (gpugauge_node_gpu_allocatable{{{CHOSEN}}}) "
                        f"and on (cluster, node) max by (cluster, node) "
                        f"(gpugauge_node_gpu_schedulable{{{CLUSTER}}}) == 0",
                    )
                    for series in ("gpugauge_node_gpu_allocatable", "gpugauge_node_gpu_requested")
                ),
                sort="GPUs",
            ),
            8,
            8,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-capacity",
    title="GPU capacity and queue",
    description=(
        "Which workloads are pending and why, which allocated GPUs idle meanwhile, and which GPUs are free, stranded "
        "or used up by a quota."
    ),
    tags=("capacity",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to count.", "label_values(cluster:gpus:count, cluster)"),
        variable(
            "resource",
            "Resource",
            "Resources of pods, as kube-state-metrics spells them.",
            f"label_values(model:gpu_allocatable:sum{{{CLUSTER}}}, resource)",
        ),
        variable("model", "Model", "GPU models.", f"label_values(model:gpu_allocatable:sum{{{CLUSTER}}}, model)"),
    ),
    rows=(NOW, pending_idle.ROW, QUEUE, SUPPLY, *capacity_quota.ROWS),
    since="now-24h",
)
