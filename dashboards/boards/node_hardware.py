"""Rows of the Grafana dashboard `gpu-node`: power, temperature, clocks and errors of its GPUs, and the inventory."""

from dashboards import hardware
from dashboards import queries as q
from dashboards.boards import alert_rows
from dashboards.boards.device_tables import GPU_LINK
from dashboards.columns import CLUSTER_COLUMN
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import graph, stat, table, timeline
from dashboards.queries import NODE
from dashboards.states import NONE_OR_SOME
from dashboards.style import Color, Column, Query, Unit, ValueState

CHOSEN = f'{NODE}, gpu=~"$gpu"'
"""For series that have the index of each GPU."""
GPU_LEGEND = "{{node}} · GPU {{gpu}}"
INVENTORY = "GPUs and MIG devices"
THROTTLING = "Throttled GPUs, by reason"


def _gpus(series: str) -> str:
    return q.per_gpu(series, NODE, CHOSEN)


def _named(values: str) -> str:
    return f"{values} * on ({q.GPU}) group_left (gpu) max by ({q.GPU}, gpu) ({q.INFO}{{{CHOSEN}}})"


def _link(panel: str) -> str:
    return panel_link("gpu-node", "node", "gpu", panel=panel)


NUMBERS = (
    stat(
        "Energy",
        "Energy that all GPUs of the node have drawn in the time range, idle ones included.",
        Unit.WATT_HOURS,
        f"sum(max by ({q.GPU}) (increase(gpugauge_gpu_energy_joules_total{{{NODE}}}[$__range]))) / 3600",
        link=_link("Power per GPU"),
    ),
    stat(
        "Throttled GPUs",
        "GPUs whose clocks are held down now by heat or by the hardware. The power limit alone is full load and does "
        "not count.",
        Unit.COUNT,
        f'count(max by ({q.GPU}) (gpugauge_clock_event{{{CHOSEN}, reason!="power_cap"}}) == 1) '
        f"or 0 * count(gpugauge_clock_event{{{CHOSEN}}})",
        NONE_OR_SOME,
        _link(THROTTLING),
    ),
    stat(
        "Firing alerts",
        "GPU alerts of the node that fire now. No data means that the rules are not loaded.",
        Unit.COUNT,
        f'count(ALERTS{{{q.FIRING}, node=~"$node"}}) or {q.RULES_LOADED}',
        NONE_OR_SOME,
        _link("Alerts of the node"),
    ),
)

POWER = PanelRow(
    "Power, temperature and clocks",
    sized(
        8,
        8,
        graph(
            "Power per GPU",
            "Power that each GPU draws, and the limit that is in force: the lowest of the node's GPUs. At the limit, "
            "a GPU lowers its clocks. MIG devices have no power of their own.",
            Unit.WATT,
            Query(_gpus("gpugauge_gpu_power_watts"), GPU_LEGEND),
            Query(
                f"min by (node) (gpugauge_gpu_power_limit_watts{{{NODE}}})",
                "{{node}} · power limit",
                Color.CRITICAL,
                dashed=True,
            ),
        ),
        graph(
            "Temperature per GPU",
            "Temperature of the GPU chip. If one GPU is much hotter than its neighbors under equal load, check its "
            "cooling.",
            Unit.CELSIUS,
            Query(_gpus("gpugauge_gpu_temperature_celsius"), GPU_LEGEND),
        ),
        graph(
            "Memory temperature per GPU",
            "Temperature of the memory; no data for GPUs that do not report it.",
            Unit.CELSIUS,
            Query(_gpus("gpugauge_gpu_memory_temperature_celsius"), GPU_LEGEND),
        ),
        graph(
            "Clocks per GPU",
            "Clock of the multiprocessors. Low while a GPU is idle; low under load means that something holds it down: "
            "see the reasons beside it.",
            Unit.HERTZ,
            Query(_named(hardware.sm_clock(NODE)), GPU_LEGEND),
        ),
        timeline(
            THROTTLING,
            "When the clocks of a GPU were held down, and by what: power_cap alone is full load, the others are heat "
            "or the hardware. No data: none was in the time range, or the exporter did not answer.",
            Query(
                f"max by (node, gpu, reason) (gpugauge_clock_event{{{CHOSEN}}}) == 1",
                "{{node}} · GPU {{gpu}} · {{reason}}",
            ),
            (ValueState(1, "throttled", Color.WARNING),),
        ),
        table(
            "XIDs of the node",
            "Errors that the driver reported since the exporter started, and when last. The runbook says which are of "
            "the work and which of the GPU. Newest first, at most 100 rows; empty when there was none.",
            (
                Column("node", "Node"),
                CLUSTER_COLUMN,
                Column("gpu", "GPU", width=60),
                Column("xid", "XID", width=60),
                Column("Value #A", "Last", Unit.AGE, width=140),
                Column("Value #B", "Times", Unit.COUNT, width=70),
            ),
            f"topk(100, max by ({q.GPU}, gpu, xid) (gpugauge_xid_last_timestamp_seconds{{{CHOSEN}}})) * 1000",
            f"topk(100, max by ({q.GPU}, gpu, xid) (gpugauge_xid_errors_total{{{CHOSEN}}}) > 0)",
            sort="Last",
        ),
        table(
            "Values that are not supported here",
            "Fields of the counters file that devices of the node do not have, and why. They are absent everywhere, "
            "which is no fault of the exporter; a source that is broken is in Sources, below. Empty when all have "
            "values.",
            (
                Column("node", "Node"),
                Column("field", "Field"),
                Column("reason", "Reason", width=130),
                Column("Value", "Devices", Unit.COUNT, width=80),
            ),
            f"topk(100, max by (node, field, reason) (gpugauge_field_unsupported_devices{{{NODE}}}) > 0)",
        ),
    ),
)

STOCK = PanelRow(
    "Inventory and alerts",
    (
        SizedPanel(
            table(
                INVENTORY,
                "Every device that the exporter exposes. A MIG-enabled GPU has no activity and no memory of its own: "
                "see its MIG devices. Memory is what can be allocated, without what the driver reserves.",
                (
                    Column("node", "Node"),
                    Column("gpu", "GPU", width=60),
                    Column("model", "Model"),
                    Column("UUID", "UUID", width=330, link=GPU_LINK),
                    CLUSTER_COLUMN,
                    Column("GPU_I_PROFILE", "Profile", width=90),
                    Column("GPU_I_ID", "Instance", width=80),
                    Column("driver_version", "Driver", width=100),
                    Column("mig_mode", "MIG", width=80),
                    Column("Value #B", "Pods", Unit.COUNT, width=80),
                    Column("Value #C", "Busy", Unit.RATIO, bar=True),
                    Column("Value #D", "Memory used", Unit.BYTES, width=120),
                    Column("Value #E", "Memory", Unit.BYTES, width=120),
                ),
                f"max by ({q.DEVICE}, gpu, model, GPU_I_PROFILE, driver_version, mig_mode) ({q.INFO}{{{CHOSEN}}})",
                q.per_device(q.ALLOCATED_PODS, NODE, CHOSEN),
                q.per_device("gpugauge_device_busy_ratio", NODE, CHOSEN),
                q.per_device("gpugauge_device_memory_used_bytes", NODE, CHOSEN),
                q.per_device("gpugauge_device_memory_total_bytes", NODE, CHOSEN),
            ),
            24,
            8,
        ),
        SizedPanel(alert_rows.firing("Alerts of the node", NODE), 24, 6),
    ),
)

ROWS = (POWER, STOCK)
