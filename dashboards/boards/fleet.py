"""The Grafana dashboard `gpu-fleet`, for all nodes of the chosen clusters.

How many GPUs there are, how many are allocated, how busy they are, pods with low utilization, and pending workloads.
Its lower rows are in `breakdown.py`.
"""

from dashboards import queries as q
from dashboards.boards import breakdown
from dashboards.columns import CLUSTER_COLUMN, NODE_COLUMN
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.panels import bars, datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER
from dashboards.states import NONE_OR_IDLE, NONE_OR_SOME
from dashboards.style import Color, Column, Dashboard, Query, Unit

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
            ),
            stat(
                "Allocated",
                "Share of the GPUs that are allocated to a pod, as a whole or in part. A low share while pods are "
                "pending means that the unallocated GPUs do not fit their requests.",
                Unit.RATIO,
                q.share("cluster:gpus_allocated:count", "cluster:gpus:count"),
            ),
            stat(
                "Unallocated",
                "GPUs of which no part is allocated to a pod. GPUs whose allocation is unknown count neither as "
                "allocated nor as unallocated.",
                Unit.COUNT,
                q.total("cluster:gpus_unallocated:count"),
            ),
            stat(
                "Allocated but idle",
                f"{q.ALLOCATED_BUT_IDLE} The pods are listed under Low utilization.",
                Unit.COUNT,
                q.total("cluster:gpu_idle_devices:count15m"),
                NONE_OR_IDLE,
            ),
            stat(
                "Busy, allocated",
                "Mean activity of all allocated GPUs and MIG devices: the larger of compute and video activity. "
                "Unallocated ones do not count, nor do those whose activity is unknown.",
                Unit.RATIO,
                q.share("cluster:gpu_allocated_busy:sum", "cluster:gpu_allocated_busy:count"),
            ),
            stat(
                "Tensor, allocated",
                "Mean share of time in which tensor cores were active, on allocated GPUs. Training with mixed "
                "precision usually reaches 20 to 60 %; no data means that profiling fields are not collected.",
                Unit.RATIO,
                q.share("cluster:gpu_allocated_tensor_active:sum", "cluster:gpu_allocated_tensor_active:count"),
            ),
            stat(
                "Memory used",
                "Framebuffer in use as a share of all that can be allocated, unallocated GPUs included.",
                Unit.RATIO,
                q.share("cluster:gpu_memory_used_bytes:sum", "cluster:gpu_memory_total_bytes:sum"),
            ),
            stat("Power", "Power that all GPUs draw now, added up.", Unit.WATT, q.total("cluster:gpu_power_watts:sum")),
        ),
        *sized(
            6,
            3,
            stat(
                "Pending pods",
                "GPU pods that could be scheduled and do not run. No data means that the watcher does not answer.",
                Unit.COUNT,
                f"sum(workload:gpu_pending_pods:count{{{CLUSTER}}}) or {q.WATCHER_UP}",
                NONE_OR_SOME,
            ),
            stat(
                "Firing alerts",
                "GPU alerts that fire now; they are listed below. No data means that the rules are not loaded.",
                Unit.COUNT,
                f"count(ALERTS{{{q.FIRING}}}) or {q.RULES_LOADED}",
                NONE_OR_SOME,
            ),
            stat(
                "Nodes without data",
                "Nodes whose exporter does not answer: their GPUs are missing from every number here. No data means "
                "that Prometheus has no exporter as a scrape target.",
                Unit.COUNT,
                f'sum(max by (cluster, node) (up{{job="gpugauge-node", {CLUSTER}}}) == bool 0)',
                NONE_OR_SOME,
            ),
            stat(
                "Pods below their threshold",
                "Pods whose mean activity of 15 minutes is below the threshold of their workload class, those that are "
                "still starting or exempt included. They are listed under Low utilization.",
                Unit.COUNT,
                f"sum({q.below_threshold('< bool')})",
                NONE_OR_SOME,
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

_LOW = q.below_threshold("<")

LOW_UTILIZATION = PanelRow(
    "Low utilization",
    (
        SizedPanel(
            table(
                "Low-utilization pods",
                "Pods whose GPUs were busy for a smaller share of 15 minutes than their threshold: for training the "
                "override of the pod or 30 %, for an unknown workload class 1 %, unless other thresholds are recorded; "
                "none for serving and interactive. Ask the owner, or set an override or an exemption as the runbook "
                "describes.",
                (
                    Column("namespace", "Namespace"),
                    Column("workload", "Workload"),
                    Column("workload_type", "Type", width=120),
                    Column("pod", "Pod"),
                    CLUSTER_COLUMN,
                    NODE_COLUMN,
                    Column("Value #A", "Busy, 15 min", Unit.RATIO, bar=True, width=150),
                    Column("Value #B", "Threshold", Unit.RATIO, width=90),
                    Column("Value #C", "GPUs", Unit.COUNT, width=70),
                ),
                q.of_pod(_LOW),
                q.of_pod(f"pod:gpu_low_utilization_threshold:ratio{{{CLUSTER}}} and on ({q.POD}) ({_LOW})"),
                q.of_pod(f"pod:gpu_devices:count{{{CLUSTER}}} and on ({q.POD}) ({_LOW})"),
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
                    f"sum by (namespace) (namespace:gpu_idle_devices:count15m{{{CLUSTER}}}) > 0",
                    "{{namespace}}",
                ),
            ),
            6,
            8,
        ),
    ),
)

_OLDEST = f"workload:gpu_pending_oldest:info{{{CLUSTER}}}"

PENDING = PanelRow(
    "Pending",
    (
        SizedPanel(
            table(
                "Pending workloads",
                "Workloads with GPU pods that could be scheduled and do not run, how long the oldest of them has been "
                "pending, and why. Time with a scheduling gate is not counted.",
                (
                    Column("namespace", "Namespace"),
                    Column("workload", "Workload"),
                    Column("workload_type", "Type", width=120),
                    Column("reason", "Reason"),
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
                "Pending pods by reason",
                "If most are pending for lack of GPUs, more GPUs or better packing help; selectors and taints "
                "are for the owner of the workload to correct.",
                Unit.COUNT,
                Query(f"sum by (reason) (workload:gpu_pending_pods_by_reason:count{{{CLUSTER}}})", "{{reason}}"),
                stacked=True,
            ),
            10,
            8,
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
    rows=(NOW, ALLOCATION, LOW_UTILIZATION, PENDING, *breakdown.ROWS),
)
