"""The Grafana dashboard `gpu-mig-sharing`: MIG layouts, which profiles are free, and GPUs that several pods share."""

from dashboards import queries as q
from dashboards.boards.device_tables import GPU_LINK
from dashboards.columns import CLUSTER_COLUMN, MODEL_COLUMN, NODE_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.panels import bars, datasource, graph, stat, table, timeline, variable
from dashboards.queries import CLUSTER, DEVICE, GPU, NODE
from dashboards.style import TABLE_ROWS, Color, Column, Dashboard, Query, Unit, ValueState

PROFILE = "{{GPU_I_PROFILE}} · {{model}}"
BY_PROFILE = "model, GPU_I_PROFILE"
MIG = (
    f'{q.INFO}{{{NODE}, GPU_CI_ID!=""}} or ({q.INFO}{{{NODE}, GPU_I_ID!="", GPU_CI_ID=""}} '
    f'unless on (cluster, node, UUID, GPU_I_ID) {q.INFO}{{{NODE}, GPU_CI_ID!=""}})'
)
"""Compute instances, in place of a GPU instance that they divide, and the other GPU instances."""
SHARED = f"max by ({DEVICE}, gpu) ({q.ALLOCATED_PODS}{{{NODE}}}) > 1"
OFFERED = (
    f"sum by (cluster, node) (max by (cluster, node, resource) (gpugauge_node_gpu_capacity{{{NODE}, "
    'resource=~"nvidia_com_mig_.*"}))'
)
EXPOSED = f"count by (cluster, node) (group by (cluster, node, UUID, GPU_I_ID, GPU_CI_ID) ({MIG}))"
CHANGING = (ValueState(0, "no", Color.OK), ValueState(1, "MIG is changed", Color.WARNING))


def _sum(series: str) -> str:
    return f"sum by ({BY_PROFILE}) ({series}{{{CLUSTER}}})"


NOW = PanelRow(
    "Now",
    sized(
        6,
        4,
        stat(
            "MIG devices",
            "MIG devices that can be allocated: compute instances in place of a GPU instance that they divide. No "
            "data: no GPU has MIG devices.",
            Unit.COUNT,
            q.total("model:gpu_mig_devices:count"),
        ),
        stat(
            "MIG devices allocated",
            "Share of the MIG devices that are allocated to a pod.",
            Unit.RATIO,
            q.share("model:gpu_mig_devices_allocated:count", "model:gpu_mig_devices:count"),
        ),
        stat(
            "Busy MIG devices, mean",
            "Mean activity of all MIG devices, unallocated ones included. It needs profiling fields.",
            Unit.RATIO,
            q.share("model:gpu_mig_busy:sum", "model:gpu_mig_busy:count"),
        ),
        stat(
            "Shared devices",
            "GPUs and MIG devices that are allocated to several pods at once: their activity is not known per pod.",
            Unit.COUNT,
            q.count_or_zero(SHARED, f"{q.ALLOCATED_PODS}{{{NODE}}}"),
        ),
    ),
)

PROFILES = PanelRow(
    "Profiles",
    (
        *sized(
            8,
            8,
            bars(
                "MIG devices by profile",
                "How many MIG devices there are of each profile.",
                Unit.COUNT,
                Query(_sum("model:gpu_mig_devices:count"), PROFILE),
            ),
            bars(
                "Unallocated, by profile",
                "How many of them are allocated to no pod: what a pending pod with this profile could be given.",
                Unit.COUNT,
                Query(
                    f"{_sum('model:gpu_mig_devices:count')} - {_sum('model:gpu_mig_devices_allocated:count')}", PROFILE
                ),
            ),
            graph(
                "Busy by profile",
                "Mean activity of the MIG devices of each profile. A large profile that is hardly busy can be made "
                "into smaller ones.",
                Unit.RATIO,
                Query(f"{_sum('model:gpu_mig_busy:sum')} / {_sum('model:gpu_mig_busy:count')}", PROFILE),
            ),
        ),
        SizedPanel(
            graph(
                "Allocated by profile",
                "How many MIG devices of each profile were allocated.",
                Unit.COUNT,
                Query(_sum("model:gpu_mig_devices_allocated:count"), PROFILE),
            ),
            24,
            7,
        ),
    ),
)

LAYOUT = PanelRow(
    "Layout",
    (
        SizedPanel(
            table(
                "Layout of MIG-enabled GPUs",
                "How many MIG devices of which profile each GPU consists of, how busy they are on average, and their "
                f"memory. At most {TABLE_ROWS} rows.",
                (
                    NODE_COLUMN,
                    Column("gpu", "GPU", width=60),
                    MODEL_COLUMN,
                    Column("UUID", "UUID", link=GPU_LINK, width=330),
                    Column("GPU_I_PROFILE", "Profile", width=120),
                    CLUSTER_COLUMN,
                    count("Value #A", "Devices", 90),
                    Column("Value #B", "Busy", Unit.RATIO, bar=True),
                ),
                f"topk({TABLE_ROWS}, count by ({GPU}, gpu, model, GPU_I_PROFILE) "
                f"(group by ({DEVICE}, gpu, model, GPU_I_PROFILE) ({MIG})))",
                f"topk({TABLE_ROWS}, avg by ({GPU}, gpu, model, GPU_I_PROFILE) "
                f"({q.per_device('gpugauge_device_busy_ratio', NODE, NODE)}) "
                f"and on ({GPU}, GPU_I_PROFILE) ({MIG}))",
                sort="Devices",
            ),
            16,
            9,
        ),
        SizedPanel(
            table(
                "Offered and exposed",
                "MIG devices that the kubelet of a node reports, and those that its exporter exposes. Where they "
                "differ, the device plugin has not noticed a change of the layout: restart it. With a single "
                f"strategy they are reported as whole GPUs and not listed. At most {TABLE_ROWS} rows.",
                (
                    NODE_COLUMN,
                    CLUSTER_COLUMN,
                    count("Value #A", "Offered"),
                    count("Value #B", "Exposed"),
                    Column(
                        "Value #C",
                        "Layout",
                        Unit.COUNT,
                        states=(ValueState(0, "agrees", Color.OK), ValueState(1, "differs", Color.WARNING)),
                        width=100,
                    ),
                ),
                f"topk({TABLE_ROWS}, {OFFERED} > 0)",
                f"topk({TABLE_ROWS}, {EXPOSED} and ({OFFERED} > 0))",
                f"topk({TABLE_ROWS}, ({OFFERED} > 0) != bool {EXPOSED})",
                sort="Layout",
            ),
            8,
            9,
        ),
    ),
)

SHARING = PanelRow(
    "Sharing",
    (
        SizedPanel(
            table(
                "Devices with several pods",
                "GPUs and MIG devices that several pods share, with the activity and memory of all of them "
                f"together; most pods first. At most {TABLE_ROWS} rows.",
                (
                    NODE_COLUMN,
                    Column("gpu", "GPU", width=60),
                    Column("UUID", "UUID", link=GPU_LINK, width=330),
                    Column("GPU_I_ID", "Instance", width=90),
                    CLUSTER_COLUMN,
                    count("Value #A", "Pods", 70),
                    Column("Value #B", "Busy", Unit.RATIO, bar=True),
                    Column("Value #C", "Memory", Unit.RATIO, bar=True),
                ),
                f"topk({TABLE_ROWS}, {SHARED})",
                *(
                    f"({values}) * on ({DEVICE}) group_left (gpu) (topk({TABLE_ROWS}, {SHARED}) ^ 0)"
                    for values in (
                        f"max by ({DEVICE}) (gpugauge_device_busy_ratio{{{NODE}}})",
                        q.memory_share(NODE),
                    )
                ),
                sort="Pods",
            ),
            16,
            8,
        ),
        SizedPanel(
            bars(
                "Allocations by sharing mode",
                "How many devices are allocated with which mode: exclusive, time-slicing, MPS, a DRA claim that "
                "several pods share, or unknown.",
                Unit.COUNT,
                Query(
                    f"count by (sharing) (group by ({DEVICE}, gpu_namespace, gpu_pod, sharing) "
                    f"(gpugauge_allocation_info{{{NODE}}}))",
                    "{{sharing}}",
                ),
            ),
            8,
            8,
        ),
        SizedPanel(
            timeline(
                "MIG is changed",
                "Nodes whose MIG layout is being changed, by their label of the MIG manager. No data: none is.",
                Query(
                    f'max by (cluster, node) (gpugauge_node_maintenance{{{NODE}, reason="mig_reconfig"}})',
                    "{{node}}",
                ),
                CHANGING,
            ),
            24,
            5,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-mig-sharing",
    title="MIG and shared GPUs",
    description="Which MIG devices there are and which are free, how busy they are, and which GPUs several pods share.",
    tags=("mig", "sharing"),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to show.", "label_values(cluster:gpus:count, cluster)"),
        variable("node", "Node", "Nodes to list.", f"label_values(node:gpus:count{{{CLUSTER}}}, node)"),
    ),
    rows=(NOW, PROFILES, LAYOUT, SHARING),
)
