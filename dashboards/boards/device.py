"""The Grafana dashboard `gpu-device`: everything about the chosen GPUs, and their MIG devices side by side.

Its last row, what the GPU reported, is in `device_errors.py`.
"""

from dashboards import hardware
from dashboards import queries as q
from dashboards.boards.device_errors import ERRORS
from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, POD_COLUMN
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.panels import bars, datasource, graph, stat, table, timeline, variable
from dashboards.queries import CLUSTER, DEVICE, GPU, NODE
from dashboards.states import ALLOCATION, UP
from dashboards.style import Color, Column, Dashboard, Query, Unit, ValueState

CHOSEN = f'{NODE}, UUID=~"$uuid"'
LEGEND = "GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}} {{GPU_CI_ID}}"
GPU_LEGEND = "GPU {{gpu}}"
SLOWED = (ValueState(0, "no", Color.OK), ValueState(1, "slowed", Color.WARNING))


def _device(series: str, legend: str) -> Query:
    return Query(q.per_device(series, CHOSEN, CHOSEN), legend)


def _gpu(values: str, what: str, *, dashed: bool = False) -> Query:
    names = f"max by ({GPU}, gpu) ({q.INFO}{{{CHOSEN}}})"
    return Query(f"{values} * on ({GPU}) group_left (gpu) {names}", f"{GPU_LEGEND} {what}", dashed=dashed)


def _max(series: str) -> str:
    return f"max by ({GPU}) ({series}{{{CHOSEN}}})"


NOW = PanelRow(
    "Now",
    sized(
        4,
        4,
        stat(
            "Readable",
            "Whether the driver gives values of the GPU. Lost: reset it, or take its node out of service.",
            Unit.COUNT,
            f"min({_max('gpugauge_device_up')})",
            (ValueState(0, "lost", Color.CRITICAL), ValueState(1, "yes", Color.OK)),
        ),
        stat(
            "Busy",
            "Mean activity of the devices: compute or video engines, whichever is busier.",
            Unit.RATIO,
            f"avg(max by ({DEVICE}) (gpugauge_device_busy_ratio{{{CHOSEN}}}))",
        ),
        stat(
            "Memory used",
            "Framebuffer in use as a share of what pods can use.",
            Unit.RATIO,
            f"sum(max by ({DEVICE}) (gpugauge_device_memory_used_bytes{{{CHOSEN}}})) "
            f"/ sum(max by ({DEVICE}) (gpugauge_device_memory_total_bytes{{{CHOSEN}}}))",
        ),
        stat(
            "Power of the limit",
            "Power drawn as a share of the limit in force. At 100 % the clocks fall.",
            Unit.RATIO,
            f"sum({_max('gpugauge_gpu_power_watts')}) / sum({_max('gpugauge_gpu_power_limit_watts')})",
        ),
        stat(
            "Temperature",
            "The highest temperature of the GPU chips.",
            Unit.CELSIUS,
            f"max({_max('gpugauge_gpu_temperature_celsius')})",
        ),
        stat(
            "Energy, time range",
            "Energy that the GPUs have drawn in the chosen time range.",
            Unit.WATT_HOURS,
            f"sum(increase(gpugauge_gpu_energy_joules_total{{{CHOSEN}}}[$__range])) / 3600",
        ),
    ),
)

USE = PanelRow(
    "Use",
    sized(
        12,
        8,
        graph(
            "Activity of engines",
            "Busy: any compute or video engine. SM: multiprocessors that had work. Tensor and memory: these units were "
            "active. Busy without the others means small kernels, data loading or waiting.",
            Unit.RATIO,
            _device("gpugauge_device_busy_ratio", f"{LEGEND} busy"),
            _device("gpugauge_device_sm_active_ratio", f"{LEGEND} SM"),
            _device("gpugauge_device_tensor_active_ratio", f"{LEGEND} tensor"),
            _device("gpugauge_device_dram_active_ratio", f"{LEGEND} memory"),
        ),
        graph(
            "Memory used and total",
            "Framebuffer in use, and what pods can use (dashed).",
            Unit.BYTES,
            _device("gpugauge_device_memory_used_bytes", f"{LEGEND} used"),
            Query(q.per_device("gpugauge_device_memory_total_bytes", CHOSEN, CHOSEN), f"{LEGEND} total", dashed=True),
        ),
    ),
)

SIDE_BY_SIDE = PanelRow(
    "Devices side by side",
    sized(
        8,
        8,
        bars(
            "Busy, each device",
            "Activity now of each MIG device of the GPU, or of the GPU itself where it is not MIG-enabled.",
            Unit.RATIO,
            _device("gpugauge_device_busy_ratio", LEGEND),
        ),
        bars(
            "Tensor activity, each device",
            "Tensor activity now. None on a busy device: its work uses no tensor cores, or waits.",
            Unit.RATIO,
            _device("gpugauge_device_tensor_active_ratio", LEGEND),
        ),
        bars(
            "Memory used, each device",
            "Framebuffer in use now as a share of what the device has.",
            Unit.RATIO,
            Query(q.with_names(f"({q.memory_share(CHOSEN)})", CHOSEN), LEGEND),
        ),
    ),
)

_SEEN = f"timestamp(gpugauge_allocation_info{{{CHOSEN}}})[$__range:$__interval]"
_KEYS = "cluster, gpu, GPU_I_PROFILE, GPU_I_ID, GPU_CI_ID, namespace, pod, container"


def _of_pods(values: str) -> str:
    """The values by device and container, with the labels that other dashboards call namespace and pod."""
    pairs = (("namespace", "gpu_namespace"), ("pod", "gpu_pod"), ("container", "gpu_container"))
    for name, source in pairs:
        values = f'label_replace({values}, "{name}", "$1", "{source}", "(.*)")'
    return values


ALLOCATED = PanelRow(
    "Pods",
    (
        SizedPanel(
            timeline(
                "Allocation of each device",
                "Unallocated, allocated to one pod, or shared by several. A gap: the kubelet did not answer, or is not "
                "asked, which does not mean unallocated.",
                _device(q.ALLOCATED_PODS, LEGEND),
                ALLOCATION,
            ),
            8,
            8,
        ),
        SizedPanel(
            table(
                "Pods of the time range",
                "Which containers had which device in the chosen time range, from when to when they were seen. The "
                "audit log, where it is on, has the exact times. At most 100 rows.",
                (
                    NAMESPACE_COLUMN,
                    POD_COLUMN,
                    Column("container", "Container"),
                    Column("gpu", "GPU", width=60),
                    Column("GPU_I_PROFILE", "Profile", width=110),
                    Column("GPU_I_ID", "Instance", width=90),
                    CLUSTER_COLUMN,
                    Column("Value #A", "First seen", Unit.AGE, width=130),
                    Column("Value #B", "Last seen", Unit.AGE, width=130),
                ),
                f"topk(100, min by ({_KEYS}) ({_of_pods(f'min_over_time({_SEEN})')}) * 1000)",
                f"topk(100, max by ({_KEYS}) ({_of_pods(f'max_over_time({_SEEN})')}) * 1000)",
                sort="Last seen",
            ),
            16,
            8,
        ),
    ),
)

PHYSICS = PanelRow(
    "Heat, power and clocks",
    (
        *sized(
            8,
            8,
            graph(
                "Temperature of chip and memory",
                "Temperature of the GPU chip and of its memory. Which is too high depends on the model: see slowed "
                "clocks.",
                Unit.CELSIUS,
                _gpu(_max("gpugauge_gpu_temperature_celsius"), "chip"),
                _gpu(_max("gpugauge_gpu_memory_temperature_celsius"), "memory"),
            ),
            graph(
                "Power and limit",
                "Power drawn, and the limit in force (dashed).",
                Unit.WATT,
                _gpu(_max("gpugauge_gpu_power_watts"), "drawn"),
                _gpu(_max("gpugauge_gpu_power_limit_watts"), "limit", dashed=True),
            ),
            graph(
                "Clocks",
                "Clocks of the multiprocessors and of the memory. No data where the counters file does not have "
                "DCGM_FI_DEV_SM_CLOCK and DCGM_FI_DEV_MEM_CLOCK.",
                Unit.HERTZ,
                _gpu(hardware.sm_clock(CHOSEN), "multiprocessors"),
                _gpu(hardware.memory_clock(CHOSEN), "memory"),
            ),
        ),
        SizedPanel(
            timeline(
                "Slowed clocks, by reason",
                "Whether something holds the clocks down: power_cap is usual under full load, the others are not.",
                Query(f"max by ({GPU}, gpu, reason) (gpugauge_clock_event{{{CHOSEN}}})", "GPU {{gpu}} {{reason}}"),
                SLOWED,
            ),
            12,
            8,
        ),
        SizedPanel(
            timeline(
                "Readable over time",
                "Down: the GPU is known and gives no values, because it was lost, requires a reset or hangs.",
                Query(f"min by ({GPU}, gpu) (gpugauge_device_up{{{CHOSEN}}})", "GPU {{gpu}}"),
                UP,
            ),
            12,
            8,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-device",
    title="GPU and MIG devices",
    description="Everything about the chosen GPUs: activity, memory, pods, power, clocks, errors and MIG devices.",
    tags=("device",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to choose nodes from.", "label_values(node:gpus:count, cluster)"),
        variable(
            "node", "Node", "Nodes to choose GPUs from.", f"label_values(node:gpus:count{{{CLUSTER}}}, node)", all=False
        ),
        variable("uuid", "GPU", "GPUs to show, by UUID.", f"label_values({q.INFO}{{{NODE}}}, UUID)", all=False),
    ),
    rows=(NOW, USE, SIDE_BY_SIDE, ALLOCATED, PHYSICS, ERRORS),
    since="now-1h",
    refresh="30s",
)
