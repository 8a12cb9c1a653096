"""The lower rows of the Grafana dashboard `gpu-fleet`.

Firing alerts; GPUs, allocation, activity and power by node, model and namespace; allocated and busy GPUs against last
week. In tables, the field `Value #A` is the value of the first query, `Value #B` of the second, and so on.
"""

from dashboards import queries as q
from dashboards.boards import alert_rows
from dashboards.columns import CLUSTER_COLUMN, NAMESPACE_COLUMN, NODE_COLUMN, share
from dashboards.layout import PanelRow, SizedPanel
from dashboards.panels import graph, table
from dashboards.queries import CLUSTER
from dashboards.style import Color, Column, Query, Unit


def _by_model(series: str) -> str:
    return f"sum by (model) ({series}{{{CLUSTER}}})"


def _load_columns(first: int) -> tuple[Column, ...]:
    """The columns Busy, Tensor, Memory and Power for four consecutive queries in this order.

    `first` is the position of the first of them among the table's queries; 0 is A.
    """
    busy, tensor, memory, power = (f"Value #{letter}" for letter in "ABCDEFGH"[first : first + 4])
    return (
        Column(busy, "Busy", Unit.RATIO, bar=True),
        Column(tensor, "Tensor", Unit.RATIO, bar=True),
        Column(memory, "Memory", Unit.RATIO, bar=True),
        Column(power, "Power", Unit.WATT, width=100),
    )


BLIND = "Nodes that no exporter answers for"
_NODE_RANK = f"node:gpu_idle_devices:count15m{{{CLUSTER}}} or 0 * node:gpus:count{{{CLUSTER}}}"


def _of_nodes(*expressions: str) -> tuple[str, ...]:
    return tuple(q.of_first_rows(each, "cluster, node", _NODE_RANK) for each in expressions)


NODES = table(
    "Nodes",
    "One row per node: its GPUs, how many are allocated as a whole or in part, how many devices are allocated and "
    "were idle over 15 minutes, mean activity of all its GPUs and MIG devices, memory in use, power, and the "
    "temperature of its hottest GPU. Open a node for its GPUs. Most idle ones first, at most 100 rows.",
    (
        NODE_COLUMN,
        CLUSTER_COLUMN,
        Column("Value #A", "GPUs", Unit.COUNT, width=70),
        Column("Value #B", "Allocated", Unit.COUNT, width=90),
        *_load_columns(2),
        Column("Value #G", "Hottest", Unit.CELSIUS, width=90),
        Column("Value #H", "Idle", Unit.COUNT, width=70),
    ),
    *_of_nodes(
        f"node:gpus:count{{{CLUSTER}}}",
        f"node:gpus_allocated:count{{{CLUSTER}}}",
        f"node:gpu_busy:sum{{{CLUSTER}}} / node:gpu_busy:count{{{CLUSTER}}}",
        f"node:gpu_tensor_active:sum{{{CLUSTER}}} / node:gpu_tensor_active:count{{{CLUSTER}}}",
        f"node:gpu_memory_used_bytes:sum{{{CLUSTER}}} / node:gpu_memory_total_bytes:sum{{{CLUSTER}}}",
        f"node:gpu_power_watts:sum{{{CLUSTER}}}",
        f"node:gpu_temperature_celsius:max{{{CLUSTER}}}",
        f"node:gpu_idle_devices:count15m{{{CLUSTER}}}",
    ),
    sort="Idle",
)

BLIND_NODES = table(
    BLIND,
    "Nodes whose exporter answers less than half of the scrapes of 10 minutes, and nodes with GPUs that were never "
    "scraped, with the share that was answered. Their GPUs are in no number here. At most 100 rows; empty when there "
    "are none.",
    (NODE_COLUMN, CLUSTER_COLUMN, share("Value", "Answered")),
    f"bottomk(100, node:gpu_exporter_down:ratio{{{CLUSTER}}})",
)

MODELS = table(
    "Models",
    "One row per GPU model; nodes with several models are together in the row mixed. Busy and tensor activity are "
    "means over all GPUs and MIG devices, unallocated ones included.",
    (
        Column("model", "Model"),
        Column("Value #A", "GPUs", Unit.COUNT, width=70),
        Column("Value #B", "Allocated", Unit.COUNT, width=90),
        *_load_columns(2),
    ),
    _by_model("model:gpus:count"),
    _by_model("model:gpus_allocated:count"),
    f"{_by_model('model:gpu_busy:sum')} / {_by_model('model:gpu_busy:count')}",
    f"{_by_model('model:gpu_tensor_active:sum')} / {_by_model('model:gpu_tensor_active:count')}",
    f"{_by_model('model:gpu_memory_used_bytes:sum')} / {_by_model('model:gpu_memory_total_bytes:sum')}",
    _by_model("model:gpu_power_watts:sum"),
)

_NAMESPACE_RANK = f"namespace:gpu_devices:sum{{{CLUSTER}}}"

NAMESPACES = table(
    "Namespaces",
    "GPUs and MIG devices that are allocated to the pods of a namespace (a shared one counts once per pod); of those "
    "that are not shared, the mean activity and how many were idle over 15 minutes; and how many pods are pending. "
    "Most allocated first, at most 100 rows and as many with pending pods.",
    (
        NAMESPACE_COLUMN,
        CLUSTER_COLUMN,
        Column("Value #A", "Pods", Unit.COUNT, width=70),
        Column("Value #B", "Allocated", Unit.COUNT, width=90),
        Column("Value #C", "Busy", Unit.RATIO, bar=True),
        Column("Value #D", "Idle", Unit.COUNT, width=70),
        Column("Value #E", "Pending", Unit.COUNT, width=80),
    ),
    *(
        q.of_first_rows(each, "cluster, namespace", _NAMESPACE_RANK)
        for each in (
            f"namespace:gpu_pods:count{{{CLUSTER}}}",
            f"namespace:gpu_devices:sum{{{CLUSTER}}}",
            f"namespace:gpu_busy:sum{{{CLUSTER}}} / namespace:gpu_busy:count{{{CLUSTER}}}",
            f"namespace:gpu_idle_devices:count15m{{{CLUSTER}}}",
        )
    ),
    f"topk(100, sum by (cluster, namespace) (workload:gpu_pending_pods:count{{{CLUSTER}}}))",
    sort="Allocated",
)

TREND = graph(
    "Allocated and busy GPUs, compared with last week",
    "Allocated GPUs, and the sum of the activity of all allocated GPUs and MIG devices. Dashed lines are the same "
    "seven days earlier. A growing gap between allocated and busy means falling utilization. With MIG compare each "
    "only with its past: a GPU counts once as allocated, and each of its MIG devices adds its own activity.",
    Unit.COUNT,
    Query(q.total("cluster:gpus_allocated:count"), "allocated", Color.IDLE),
    Query(q.total("cluster:gpu_allocated_busy:sum"), "busy", Color.BUSY),
    Query(f"sum(cluster:gpus_allocated:count{{{CLUSTER}}} offset 1w)", "allocated, last week", Color.IDLE, dashed=True),
    Query(f"sum(cluster:gpu_allocated_busy:sum{{{CLUSTER}}} offset 1w)", "busy, last week", Color.BUSY, dashed=True),
)

POWER = graph(
    "Power by model",
    "Power that the GPUs of each model draw together. Power that stays high while activity falls is drawn by "
    "idle GPUs.",
    Unit.WATT,
    Query(_by_model("model:gpu_power_watts:sum"), "{{model}}"),
    stacked=True,
)

ROWS = (
    PanelRow("Alerts", (SizedPanel(alert_rows.OF_CLUSTERS, 16, 7), SizedPanel(BLIND_NODES, 8, 7))),
    PanelRow(
        "By node, model and namespace",
        (SizedPanel(NODES, 24, 9), SizedPanel(MODELS, 12, 8), SizedPanel(NAMESPACES, 12, 8)),
    ),
    PanelRow("Trend", (SizedPanel(TREND, 12, 9), SizedPanel(POWER, 12, 9)), collapsed=True),
)
