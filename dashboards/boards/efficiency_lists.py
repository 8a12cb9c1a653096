"""Lower rows of the Grafana dashboard `gpu-efficiency`: workloads, partly idle pods, exemptions, models with prices."""

from dashboards import queries as q
from dashboards.boards import alert_rows
from dashboards.columns import (
    CLUSTER_COLUMN,
    MODEL_COLUMN,
    NAMESPACE_COLUMN,
    POD_COLUMN,
    TYPE_COLUMN,
    WORKLOAD_COLUMN,
    count,
)
from dashboards.layout import PanelRow, SizedPanel
from dashboards.panels import graph, table
from dashboards.queries import CLUSTER, NAMESPACE
from dashboards.style import TABLE_ROWS, Column, Query, Unit

WORKLOADS = "Workloads by GPU-hours that were not used"
_UNUSED = q.over_range("workload:gpu_unused_hours:sum5m", NAMESPACE)


def _rows(expression: str) -> str:
    return q.of_first_rows(expression, q.WORKLOAD, _UNUSED)


WASTED = table(
    WORKLOADS,
    "GPU-hours of the time range that a workload had allocated and that were not used, the most that one of its "
    "devices had of its memory in use, and how many devices are idle now. Little activity and little memory: a MIG "
    "device or a shared GPU may do, which `gpugauge report` works out. Most unused ones first, at most 100 rows.",
    (
        NAMESPACE_COLUMN,
        WORKLOAD_COLUMN,
        TYPE_COLUMN,
        CLUSTER_COLUMN,
        Column("Value #A", "Not used", Unit.HOURS, width=100),
        Column("Value #B", "Allocated", Unit.HOURS, width=100),
        Column("Value #C", "Most memory", Unit.BYTES, width=120),
        count("Value #D", "Idle now"),
    ),
    f"topk({TABLE_ROWS}, {_UNUSED})",
    _rows(q.over_range("workload:gpu_hours:sum5m", NAMESPACE)),
    _rows(f"max_over_time(workload:gpu_memory_used_bytes:max5m{{{NAMESPACE}}}[$__range])"),
    _rows(f"sum by ({q.WORKLOAD}) (workload:gpu_idle_devices:count15m{{{NAMESPACE}}})"),
    sort="Not used",
)

_PARTLY = f"""
topk({TABLE_ROWS},
  sum by ({q.POD}) (pod:gpu_idle_devices:count15m{{{NAMESPACE}}}) < on ({q.POD}) pod:gpu_devices:count{{{NAMESPACE}}}
)
"""

PARTLY_IDLE = table(
    "Partly idle pods",
    "Pods of which some devices were idle over 15 minutes and others were not: a rank that does nothing, too large a "
    "request, or a process that sees only some of its GPUs. At most 100 rows; empty when there are none.",
    (
        NAMESPACE_COLUMN,
        POD_COLUMN,
        CLUSTER_COLUMN,
        count("Value #A", "Idle", 70),
        count("Value #B", "Allocated"),
    ),
    _PARTLY,
    f"pod:gpu_devices:count{{{NAMESPACE}}} and on ({q.POD}) {_PARTLY}",
    sort="Idle",
)

_PRICE = f"max by (cluster, model, currency) (gpugauge_price_per_hour{{{CLUSTER}}})"
_MODEL_HOURS = "sum_over_time({}{{{}}}[$__range:$__interval]) * $__interval_ms / 3600000"


def _hours(series: str) -> str:
    """The hours of a series that is recorded every minute, summed at steps that follow the time range."""
    return _MODEL_HOURS.format(series, CLUSTER)


_NOT_BUSY = f"({_hours('model:gpu_allocated_busy:count')} - {_hours('model:gpu_allocated_busy:sum')})"

MODELS = table(
    "Models and cost",
    "GPU-hours of the time range by model: those of GPUs that were allocated as a whole or in part, those of devices "
    "that were allocated and had no active engine, and of GPUs that were not allocated. Cost is the price in the "
    "price file, the highest where there are several, times hours that were not used: what it is worth, not a bill. "
    "No price: no cost.",
    (
        MODEL_COLUMN,
        CLUSTER_COLUMN,
        Column("Value #A", "Allocated", Unit.HOURS, width=100),
        Column("Value #B", "Not used", Unit.HOURS, width=100),
        Column("Value #C", "Unallocated", Unit.HOURS, width=110),
        Column("Value #D", "Energy", Unit.WATT_HOURS, width=100),
        Column("currency", "Currency", width=90),
        Column("Value #E", "Price per hour", Unit.MONEY, width=120),
        Column("Value #F", "Cost of not used", Unit.MONEY, width=130),
    ),
    _hours("model:gpus_allocated:count"),
    _NOT_BUSY,
    _hours("model:gpus_unallocated:count"),
    f"{q.over_range('model:gpu_energy_joules:increase5m', CLUSTER)} / 3600",
    f"{_PRICE} and on (cluster, model) model:gpus:count{{{CLUSTER}}}",
    f"{_PRICE} * on (cluster, model) group_left () {_NOT_BUSY}",
    sort="Not used",
)

ACTIVITY = graph(
    "Devices by how busy they were",
    "Allocated devices that are not shared by the activity of their pod over 5 minutes, in percent. A large share "
    "below 10 means that more work fits on the same GPUs.",
    Unit.COUNT,
    Query(f"sum by (percent) (workload:gpu_devices_by_activity:count5m{{{NAMESPACE}}})", "{{percent}} %"),
    stacked=True,
)

ROWS = (
    PanelRow("Workloads", (SizedPanel(WASTED, 24, 9),)),
    PanelRow(
        "Partly idle, and exempt",
        (
            SizedPanel(PARTLY_IDLE, 12, 8),
            SizedPanel(alert_rows.exemptions("Exemptions in force", f'{CLUSTER}, gpu_namespace=~"$namespace"'), 12, 8),
        ),
    ),
    PanelRow("Models and prices", (SizedPanel(MODELS, 24, 8),)),
    PanelRow("Distribution", (SizedPanel(ACTIVITY, 24, 8),), collapsed=True),
)
