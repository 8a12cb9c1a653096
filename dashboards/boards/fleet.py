"""The Grafana dashboard `gpu-fleet`, for all nodes of the chosen clusters.

How many GPUs there are, how many are allocated, how busy they are, pods with low utilization, and pending workloads.
The rows with lists of workloads are in `fleet_lists.py`, its lower rows in `breakdown.py`.
"""

from dashboards import queries as q
from dashboards.boards import breakdown, fleet_lists, pending_idle
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import datasource, graph, stat, variable
from dashboards.queries import CLUSTER
from dashboards.states import NONE_OR_CRITICAL, NONE_OR_IDLE, NONE_OR_SOME
from dashboards.style import Color, Dashboard, Query, Unit


def _list(panel: str) -> str:
    return panel_link("gpu-fleet", panel=panel)


NOW = PanelRow(
    "Now",
    (
        *sized(
            3,
            4,
            stat(
                "GPUs",
                "GPUs that an exporter exposes; a MIG-enabled GPU counts once. No data means that there is no "
                "exporter, not that there are no GPUs.",
                Unit.COUNT,
                q.total("cluster:gpus:count"),
                link=_list("Nodes"),
            ),
            stat(
                "Allocated",
                "Share of the GPUs that are allocated to a pod, as a whole or in part. A low share while pods are "
                "pending means that the unallocated GPUs do not fit their requests.",
                Unit.RATIO,
                q.share("cluster:gpus_allocated:count", "cluster:gpus:count"),
                link=_list("Nodes"),
            ),
            stat(
                "Unallocated",
                "GPUs of which no part is allocated to a pod. GPUs whose allocation is unknown count neither as "
                "allocated nor as unallocated.",
                Unit.COUNT,
                q.total("cluster:gpus_unallocated:count"),
                link=panel_link("gpu-capacity", panel=pending_idle.TITLE),
            ),
            stat(
                "Allocated but idle",
                q.ALLOCATED_BUT_IDLE,
                Unit.COUNT,
                q.total("cluster:gpu_idle_devices:count15m"),
                NONE_OR_IDLE,
                panel_link("gpu-capacity", panel="Idle workloads by resource and model"),
            ),
            stat(
                "Busy, allocated",
                "Mean activity of all allocated GPUs and MIG devices: the larger of compute and video activity. "
                "Unallocated ones do not count, nor do those whose activity is unknown.",
                Unit.RATIO,
                q.share("cluster:gpu_allocated_busy:sum", "cluster:gpu_allocated_busy:count"),
                link=_list("Namespaces"),
            ),
            stat(
                "Tensor, allocated",
                "Mean share of time in which tensor cores were active, on allocated GPUs. Training with mixed "
                "precision usually reaches 20 to 60 %; no data means that profiling fields are not collected.",
                Unit.RATIO,
                q.share("cluster:gpu_allocated_tensor_active:sum", "cluster:gpu_allocated_tensor_active:count"),
                link=_list("Models"),
            ),
            stat(
                "Memory used",
                "Framebuffer in use as a share of all that can be allocated, unallocated GPUs included.",
                Unit.RATIO,
                q.share("cluster:gpu_memory_used_bytes:sum", "cluster:gpu_memory_total_bytes:sum"),
                link=_list("Nodes"),
            ),
            stat(
                "Power",
                "Power that all GPUs draw now, added up.",
                Unit.WATT,
                q.total("cluster:gpu_power_watts:sum"),
                link=_list("Power by model"),
            ),
        ),
        SizedPanel(
            stat(
                "GPUs in trouble",
                "GPUs of which a critical alert fires now. No data means that the rules are not loaded.",
                Unit.COUNT,
                f"""
                count(count by (cluster, node, UUID) (ALERTS{{{q.FIRING}, severity="critical", UUID!=""}}))
                or {q.RULES_LOADED}
                """,
                NONE_OR_CRITICAL,
                panel_link("gpu-health"),
            ),
            4,
            3,
        ),
        *sized(
            5,
            3,
            stat(
                "Pending pods",
                "GPU pods that could be scheduled and do not run. No data means that the watcher does not answer.",
                Unit.COUNT,
                f"sum(workload:gpu_pending_pods:count{{{CLUSTER}}}) or {q.WATCHER_UP}",
                NONE_OR_SOME,
                _list("Pending workloads"),
            ),
            stat(
                "Firing alerts",
                "GPU alerts that fire now; they are listed below. No data means that the rules are not loaded.",
                Unit.COUNT,
                f"count(ALERTS{{{q.FIRING}}}) or {q.RULES_LOADED}",
                NONE_OR_SOME,
                _list("Alerts that fire"),
            ),
            stat(
                "Nodes without data",
                "Nodes whose exporter answers less than half of the scrapes or was never scraped: their GPUs are "
                "missing from every number here. No data means that Prometheus has no exporter as a scrape target.",
                Unit.COUNT,
                f"""
                count(node:gpu_exporter_down:ratio{{{CLUSTER}}})
                or 0 * count(node:gpu_exporter_up:ratio{{{CLUSTER}}})
                """,
                NONE_OR_SOME,
                _list(breakdown.BLIND),
            ),
            stat(
                "Pods below threshold",
                "Pods whose mean activity of 15 minutes is below the threshold of their workload class, those that are "
                "still starting or exempt included. They are listed under Low utilization.",
                Unit.COUNT,
                f"sum({q.below_threshold('< bool')})",
                NONE_OR_SOME,
                _list("Low-utilization pods"),
            ),
        ),
    ),
)

_ALLOCATED = q.total("cluster:gpu_devices_allocated:count")
_KNOWN = q.total("cluster:gpu_allocated_busy:count")
_IDLE = q.total("cluster:gpu_idle_devices:count")
_UNALLOCATED = q.total("cluster:gpu_devices_unallocated:count")

ALLOCATION = PanelRow(
    "Allocation and activity",
    (
        SizedPanel(
            graph(
                "State of GPUs and MIG devices",
                "Every device that can be allocated (a GPU, or the MIG devices of a MIG-enabled one) by its state at "
                f"that moment. Each is in one state; idle is an activity below {q.IDLE_THRESHOLD_TEXT}.",
                Unit.COUNT,
                Query(f"{_KNOWN} - {_IDLE}", "allocated, busy", Color.BUSY),
                Query(_IDLE, "allocated, idle", Color.IDLE),
                Query(
                    f"({_ALLOCATED} - ({_KNOWN} or 0 * {_ALLOCATED})) > 0", "allocated, activity unknown", Color.WARNING
                ),
                Query(_UNALLOCATED, "unallocated", Color.OK),
                Query(
                    f"({q.total('cluster:gpu_devices:count')} - ({_ALLOCATED} + {_UNALLOCATED} or "
                    f"0 * {q.total('cluster:gpu_devices:count')})) > 0",
                    "allocation unknown",
                    Color.UNKNOWN,
                ),
                stacked=True,
            ),
            12,
            9,
        ),
        SizedPanel(
            graph(
                "Activity of allocated GPUs",
                "Means over allocated GPUs and MIG devices: any engine, tensor cores, memory interface. Busy without "
                "tensor activity hints at data loading, small kernels or plain 32-bit arithmetic.",
                Unit.RATIO,
                Query(
                    q.share("cluster:gpu_allocated_busy:sum", "cluster:gpu_allocated_busy:count"),
                    "any engine",
                    Color.BUSY,
                ),
                Query(
                    q.share("cluster:gpu_allocated_tensor_active:sum", "cluster:gpu_allocated_tensor_active:count"),
                    "tensor cores",
                    Color.CRITICAL,
                ),
                Query(
                    q.share("cluster:gpu_allocated_dram_active:sum", "cluster:gpu_allocated_dram_active:count"),
                    "memory",
                    Color.WARNING,
                ),
            ),
            12,
            9,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-fleet",
    title="GPU fleet overview",
    description=(
        "How many GPUs there are, how many are allocated, how busy they are, which pods have low utilization and which "
        "workloads are pending."
    ),
    tags=("fleet",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to count.", "label_values(cluster:gpus:count, cluster)"),
    ),
    rows=(NOW, fleet_lists.PENDING, ALLOCATION, fleet_lists.LOW_UTILIZATION, *breakdown.ROWS),
)
