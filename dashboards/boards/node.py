"""The Grafana dashboard `gpu-node`, for the chosen nodes.

Activity and allocation of each GPU and MIG device. Power, clocks, errors and inventory are in `node_hardware.py`, its
last row, the health of the exporter, in `health.py`.
"""

from dashboards import queries as q
from dashboards import states
from dashboards.boards import health, node_hardware
from dashboards.boards.node_hardware import CHOSEN, INVENTORY
from dashboards.columns import NAMESPACE_COLUMN, POD_COLUMN, WORKLOAD_COLUMN
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import datasource, graph, stat, table, timeline, variable
from dashboards.queries import CLUSTER, NODE
from dashboards.states import NONE_OR_CRITICAL, NONE_OR_IDLE, VALUE_OR_CAUSE
from dashboards.style import Color, Column, Dashboard, Query, Unit, ValueState

DEVICE_LEGEND = "{{node}} · GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
ALLOCATIONS = "Allocations"


def _devices(series: str) -> str:
    return q.per_device(series, NODE, CHOSEN)


def _list(panel: str) -> str:
    return panel_link("gpu-node", "node", "gpu", panel=panel)


NOW = PanelRow(
    "Now",
    (
        *sized(
            4,
            4,
            stat(
                "GPUs",
                "GPUs that the exporter of this node exposes. No data: it exposes none, or does not answer.",
                Unit.COUNT,
                f"sum(node:gpus:count{{{NODE}}})",
                link=_list(INVENTORY),
            ),
            stat(
                "Missing GPUs",
                "GPUs that are expected (by option, or from the PCI bus of the node) and cannot be read. See GPUs that "
                "can be read, below.",
                Unit.COUNT,
                f"sum(max by (node) (gpugauge_devices_expected{{{health.EXPORTER}}}) "
                f"- max by (node) (gpugauge_devices_observed{{{health.EXPORTER}}}))",
                NONE_OR_CRITICAL,
                _list("GPUs that can be read"),
            ),
            stat(
                "Allocated",
                "Share of the GPUs that are allocated to a pod, as a whole or in part.",
                Unit.RATIO,
                f"sum(node:gpus_allocated:count{{{NODE}}}) / sum(node:gpus:count{{{NODE}}})",
                link=_list(ALLOCATIONS),
            ),
            stat(
                "Allocated but idle",
                q.ALLOCATED_BUT_IDLE,
                Unit.COUNT,
                f"sum(node:gpu_idle_devices:count15m{{{NODE}}})",
                NONE_OR_IDLE,
                _list(ALLOCATIONS),
            ),
            stat(
                "Utilization",
                "Mean activity of all GPUs and MIG devices of the node, unallocated ones included. In words where it "
                "is not known and why.",
                Unit.RATIO,
                q.value_or_cause(
                    f"sum(node:gpu_busy:sum{{{NODE}}}) / sum(node:gpu_busy:count{{{NODE}}})",
                    broken=q.SOURCE_DOWN,
                    unsupported=q.unsupported("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
                ),
                VALUE_OR_CAUSE,
            ),
            stat(
                "Memory used",
                "Framebuffer in use as a share of all of the node that can be allocated. In words where it is not "
                "known and why.",
                Unit.RATIO,
                q.value_or_cause(
                    f"sum(node:gpu_memory_used_bytes:sum{{{NODE}}}) / sum(node:gpu_memory_total_bytes:sum{{{NODE}}})",
                    broken=q.SOURCE_DOWN,
                    unsupported=q.unsupported("DCGM_FI_DEV_FB_USED"),
                ),
                VALUE_OR_CAUSE,
            ),
        ),
        *sized(
            4,
            3,
            stat(
                "Power",
                "Power that all GPUs of the node draw now, added up.",
                Unit.WATT,
                f"sum(node:gpu_power_watts:sum{{{NODE}}})",
            ),
            stat(
                "Hottest GPU",
                "Highest temperature of a GPU chip. Which temperature is too high depends on the model.",
                Unit.CELSIUS,
                f"max(node:gpu_temperature_celsius:max{{{NODE}}})",
            ),
            stat(
                "Age of the data",
                "How long ago the exporter read the devices: usually less than its collection interval (30 s by "
                "default). From two minutes on, the values here are out of date.",
                Unit.SECONDS,
                f"time() - min(gpugauge_last_collection_timestamp_seconds{{{health.EXPORTER}}})",
                (ValueState(0, "", Color.OK), ValueState(120, "", Color.WARNING)),
                _list("Sources"),
            ),
            *node_hardware.NUMBERS,
        ),
    ),
)

ACTIVITY = PanelRow(
    "Activity",
    sized(
        12,
        8,
        graph(
            "Utilization per GPU",
            "Share of time in which compute or video engines were active, per GPU or MIG device. It does not show how "
            "well the engines were used: see tensor and memory activity.",
            Unit.RATIO,
            Query(_devices("gpugauge_device_busy_ratio"), DEVICE_LEGEND),
        ),
        graph(
            "Tensor activity per GPU",
            "Share of time in which tensor cores were active. Near zero on a busy GPU: the work uses no tensor cores "
            "or waits for data.",
            Unit.RATIO,
            Query(_devices("gpugauge_device_tensor_active_ratio"), DEVICE_LEGEND),
        ),
        graph(
            "Memory used per GPU",
            "Framebuffer in use as a share of what pods can use. Frameworks keep memory that they once allocated: a "
            "high value does not mean that all of it is used.",
            Unit.RATIO,
            Query(q.with_names(f"({q.memory_share(NODE)})", CHOSEN), DEVICE_LEGEND),
        ),
        graph(
            "Memory bandwidth per GPU",
            "Share of time in which the memory interface was busy. High with low tensor activity: memory is the limit.",
            Unit.RATIO,
            Query(_devices("gpugauge_device_dram_active_ratio"), DEVICE_LEGEND),
        ),
    ),
)

_ALLOCATIONS = (
    f"max by ({q.DEVICE}, namespace, pod, container) (label_replace(label_replace(label_replace("
    f"max by ({q.DEVICE}, gpu_namespace, gpu_pod, gpu_container) (gpugauge_allocation_info{{{NODE}}}), "
    '"namespace", "$1", "gpu_namespace", "(.*)"), "pod", "$1", "gpu_pod", "(.*)"), '
    '"container", "$1", "gpu_container", "(.*)")) '
    f"* on ({q.POD}) group_left (workload, workload_type) pod:gpu_workload:info{{{CLUSTER}}} "
    f"* on ({q.DEVICE}) group_left (gpu, GPU_I_PROFILE) "
    f"max by ({q.DEVICE}, gpu, GPU_I_PROFILE) ({q.INFO}{{{CHOSEN}}})"
)

ALLOCATION = PanelRow(
    "Allocation",
    (
        SizedPanel(
            timeline(
                "Allocation of each GPU",
                "Unallocated, allocated to one pod, or shared by several. No data: attribution is off or the kubelet "
                "does not answer, which does not mean unallocated.",
                Query(_devices(q.ALLOCATED_PODS), DEVICE_LEGEND),
                states.ALLOCATION,
            ),
            8,
            9,
        ),
        SizedPanel(
            table(
                ALLOCATIONS,
                "One row per container and device. Activity and memory are those of the device: on a shared one they "
                "belong to all of its pods together.",
                (
                    Column("node", "Node"),
                    Column("gpu", "GPU", width=60),
                    Column("GPU_I_PROFILE", "Profile", width=90),
                    Column("GPU_I_ID", "Instance", width=80),
                    NAMESPACE_COLUMN,
                    WORKLOAD_COLUMN,
                    POD_COLUMN,
                    Column("container", "Container"),
                    Column("Value #B", "Busy", Unit.RATIO, bar=True),
                    Column("Value #C", "Memory", Unit.RATIO, bar=True),
                ),
                _ALLOCATIONS,
                f"{_ALLOCATIONS} * on ({q.DEVICE}) group_left () "
                f"max by ({q.DEVICE}) (gpugauge_device_busy_ratio{{{NODE}}})",
                f"{_ALLOCATIONS} * on ({q.DEVICE}) group_left () ({q.memory_share(NODE)})",
            ),
            16,
            9,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-node",
    title="GPU node",
    description="Activity and allocation of each GPU and MIG device of a node, and the health of its exporter.",
    tags=("node",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to choose nodes from.", "label_values(node:gpus:count, cluster)"),
        variable("node", "Node", "Nodes to show.", f"label_values(node:gpus:count{{{CLUSTER}}}, node)", all=False),
        variable("gpu", "GPU", "GPUs to show, by index.", f"label_values({q.INFO}{{{NODE}}}, gpu)"),
    ),
    rows=(NOW, ACTIVITY, ALLOCATION, *node_hardware.ROWS, health.ROW),
    since="now-3h",
    refresh="30s",
)
