"""The lower half of `gpu-fleet`: the same quantities by node, model and namespace, the alerts, and the trend."""

from dashboards import queries as q
from dashboards.layout import Row, Sized
from dashboards.panels import graph, table, to
from dashboards.queries import CLUSTER
from dashboards.style import Colour, Column, Query, Unit

TO_NODE = to("gpu-node", node="Node")
ALERT = "alertname, severity, area, cluster, node, namespace, workload, pod"


def _by(keys: str, reduce: str, expression: str) -> str:
    return f"{reduce} by ({keys}) ({expression})"


def _load_columns(first: int) -> tuple[Column, ...]:
    """Busy, tensor, memory and power as the queries from number `first` on give them."""
    busy, tensor, memory, power = (f"Value #{letter}" for letter in "ABCDEFGH"[first : first + 4])
    return (
        Column(busy, "Busy", Unit.RATIO, bar=True),
        Column(tensor, "Tensor", Unit.RATIO, bar=True),
        Column(memory, "Memory", Unit.RATIO, bar=True),
        Column(power, "Power", Unit.WATT, width=100),
    )


NODES = table(
    "Nodes",
    "One line per node: its cards, how many are held in whole or in part, mean activity of all its GPUs and instances, "
    "memory in use, power and its hottest card. Open a node for its cards.",
    (
        Column("node", "Node", link=TO_NODE),
        Column("cluster", "Cluster", width=110),
        Column("Value #A", "GPUs", Unit.COUNT, width=70),
        Column("Value #B", "Held", Unit.COUNT, width=70),
        *_load_columns(2),
        Column("Value #G", "Hottest", Unit.CELSIUS, width=90),
    ),
    _by("cluster, node", "count", q.cards(CLUSTER)),
    _by("cluster, node", "sum", q.held_cards(CLUSTER)),
    _by("cluster, node", "avg", f"{q.BUSY}{{{CLUSTER}}}"),
    _by("cluster, node", "avg", f"{q.TENSOR}{{{CLUSTER}}}"),
    _by("cluster, node", "sum", f"{q.USED}{{{CLUSTER}}}")
    + " / "
    + _by("cluster, node", "sum", f"{q.TOTAL}{{{CLUSTER}}}"),
    _by("cluster, node", "sum", f"{q.POWER}{{{CLUSTER}}}"),
    _by("cluster, node", "max", f"{q.TEMPERATURE}{{{CLUSTER}}}"),
)

MODELS = table(
    "Models",
    "One line per card model. Busy and tensor activity are means over its GPUs and instances, free ones included.",
    (
        Column("model", "Model"),
        Column("Value #A", "GPUs", Unit.COUNT, width=70),
        Column("Value #B", "Held", Unit.COUNT, width=70),
        *_load_columns(2),
    ),
    _by("model", "count", _by(f"{q.CARD}, model", "count", f"{q.INFO}{{{CLUSTER}}}")),
    _by("model", "sum", q.per_card(q.held_cards(CLUSTER), CLUSTER, "model")),
    _by("model", "avg", q.per_device(f"{q.BUSY}{{{CLUSTER}}}", CLUSTER)),
    _by("model", "avg", q.per_device(f"{q.TENSOR}{{{CLUSTER}}}", CLUSTER)),
    f"{_by('model', 'sum', q.per_device(f'{q.USED}{{{CLUSTER}}}', CLUSTER))}"
    f" / {_by('model', 'sum', q.per_device(f'{q.TOTAL}{{{CLUSTER}}}', CLUSTER))}",
    _by("model", "sum", q.per_card(f"{q.POWER}{{{CLUSTER}}}", CLUSTER, "model")),
)

NAMESPACES = table(
    "Namespaces",
    "GPUs and instances that the pods of a namespace hold (a shared one counts for each holder), the mean activity of "
    "those held alone, how many of them were idle for 15 minutes, and how many pods wait.",
    (
        Column("namespace", "Namespace"),
        Column("cluster", "Cluster", width=110),
        Column("Value #A", "Pods", Unit.COUNT, width=70),
        Column("Value #B", "Held", Unit.COUNT, width=70),
        Column("Value #C", "Busy", Unit.RATIO, bar=True),
        Column("Value #D", "Idle", Unit.COUNT, width=70),
        Column("Value #E", "Waiting", Unit.COUNT, width=80),
    ),
    _by("cluster, namespace", "count", f"pod:gpu_devices:count{{{CLUSTER}}}"),
    _by("cluster, namespace", "sum", f"pod:gpu_devices:count{{{CLUSTER}}}"),
    _by("cluster, namespace", "avg", f"{q.HELD_BUSY}{{{CLUSTER}}}"),
    _by("cluster, namespace", "sum", f"avg_over_time({q.HELD_BUSY}{{{CLUSTER}}}[15m]) < bool {q.IDLE}"),
    _by("cluster, namespace", "sum", f"workload:gpu_pending_pods:count{{{CLUSTER}}}"),
    sort="Held",
)

ALERTS = table(
    "Alerts that fire",
    "GPU alerts that fire now and since when their condition holds. The runbook says what each means and what to do.",
    (
        Column("severity", "Severity", width=100),
        Column("alertname", "Alert"),
        Column("area", "Area", width=110),
        Column("namespace", "Namespace"),
        Column("workload", "Workload"),
        Column("pod", "Pod"),
        Column("cluster", "Cluster", width=110),
        Column("node", "Node", link=TO_NODE),
        Column("Value", "Since", Unit.AGE, width=140),
    ),
    f'{_by(ALERT, "max", f"""ALERTS_FOR_STATE{{component="gpu", {CLUSTER}}}""")} * 1000 '
    f"and on ({ALERT}) ALERTS{{{q.FIRING}}}",
)

TREND = graph(
    "Held and busy, against last week",
    "Cards held, and the sum of the activity of all held GPUs and instances as if each were one. Dashed lines are the "
    "same seven days earlier. A widening gap between held and busy is waste.",
    Unit.COUNT,
    Query(f"sum({q.held_cards(CLUSTER)})", "held", Colour.IDLE),
    Query(f"sum({q.while_held(q.BUSY, CLUSTER)})", "busy", Colour.BUSY),
    Query(
        f"sum(max by ({q.CARD}) ({q.HOLDERS}{{{CLUSTER}}} offset 1w) > bool 0)",
        "held, last week",
        Colour.IDLE,
        dashed=True,
    ),
    Query(
        f"sum({q.BUSY}{{{CLUSTER}}} offset 1w and on ({q.DEVICE}) ({q.HOLDERS}{{{CLUSTER}}} offset 1w > 0))",
        "busy, last week",
        Colour.BUSY,
        dashed=True,
    ),
)

POWER = graph(
    "Power by model",
    "What the cards of each model draw together. Power that stays while activity falls is the idle floor.",
    Unit.WATT,
    Query(_by("model", "sum", q.per_card(f"{q.POWER}{{{CLUSTER}}}", CLUSTER, "model")), "{{model}}"),
    stacked=True,
)

ROWS = (
    Row("Alerts", (Sized(ALERTS, 24, 7),)),
    Row("By node, model and namespace", (Sized(NODES, 24, 9), Sized(MODELS, 12, 8), Sized(NAMESPACES, 12, 8))),
    Row("Trend", (Sized(TREND, 12, 9), Sized(POWER, 12, 9)), collapsed=True),
)
