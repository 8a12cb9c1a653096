"""`gpu-node`: what each card and instance of a node does, who holds it, and whether its exporter can be trusted."""

from dashboards import health
from dashboards import queries as q
from dashboards.layout import Row, Sized, sized
from dashboards.panels import datasource, graph, stat, table, timeline, variable
from dashboards.queries import CLUSTER, NODE
from dashboards.style import Board, Colour, Column, Query, State, Unit

CHOSEN = f'{NODE}, gpu=~"$gpu"'
"""For the info series, which alone knows the index of a GPU."""

DEVICE_LEGEND = "{{node}} · GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
CARD_LEGEND = "{{node}} · GPU {{gpu}}"


def _devices(series: str) -> str:
    return q.per_device(f"{series}{{{NODE}}}", CHOSEN)


def _cards(series: str) -> str:
    return q.per_card(f"{series}{{{NODE}}}", CHOSEN)


NOW = Row(
    "Now",
    (
        *sized(
            4,
            4,
            stat(
                "GPUs",
                "Cards that the exporter of this node shows. No data: it shows none, or does not answer.",
                Unit.COUNT,
                f"count({q.cards(NODE)})",
            ),
            stat(
                "Missing cards",
                "Cards that should be there (by option or by what the PCI bus of the node shows) and cannot be "
                "read. See Cards that can be read below.",
                Unit.COUNT,
                f"sum(max by (hostname) (gpugauge_devices_expected{{{health.PAGE}}}) "
                f"- max by (hostname) (gpugauge_devices_observed{{{health.PAGE}}}))",
                (State(0, "none", Colour.OK), State(1, "", Colour.CRITICAL)),
            ),
            stat(
                "Held",
                "Share of the cards of which a pod holds the whole or a part.",
                Unit.RATIO,
                f"sum({q.held_cards(NODE)}) / count({q.cards(NODE)})",
            ),
            stat(
                "Held but idle",
                "GPUs and MIG instances that are held and were idle for 15 minutes (mean activity under 1 %).",
                Unit.COUNT,
                f"sum({q.idle_held(NODE)})",
                (State(0, "none", Colour.OK), State(1, "", Colour.IDLE)),
            ),
            stat(
                "Utilisation",
                "Mean activity of all GPUs and instances of the node, free ones included.",
                Unit.RATIO,
                f"avg({q.BUSY}{{{NODE}}})",
            ),
            stat(
                "Memory used",
                "Framebuffer in use as a share of all framebuffer of the node.",
                Unit.RATIO,
                f"sum({q.USED}{{{NODE}}}) / sum({q.TOTAL}{{{NODE}}})",
            ),
        ),
        *sized(
            8,
            3,
            stat("Power", "Sum of what the cards of the node draw now.", Unit.WATT, f"sum({q.POWER}{{{NODE}}})"),
            stat(
                "Hottest card",
                "Highest temperature of a GPU chip. What is too hot depends on the model: watch throttling instead.",
                Unit.CELSIUS,
                f"max({q.TEMPERATURE}{{{NODE}}})",
            ),
            stat(
                "Age of the data",
                "How long ago the exporter read the devices; about its interval (30 s) when well. Older than two "
                "minutes, everything here is a thing of the past.",
                Unit.SECONDS,
                f"time() - min(gpugauge_snapshot_timestamp_seconds{{{health.PAGE}}})",
                (State(0, "", Colour.OK), State(120, "", Colour.WARNING)),
            ),
        ),
    ),
)

ACTIVITY = Row(
    "Activity",
    sized(
        12,
        8,
        graph(
            "Utilisation per GPU",
            "Share of time in which compute or video engines worked, per GPU or MIG instance. It says that something "
            "ran, not that it ran well: see tensor and memory activity.",
            Unit.RATIO,
            Query(_devices(q.BUSY), DEVICE_LEGEND),
        ),
        graph(
            "Tensor activity per GPU",
            "Share of time in which tensor cores worked. Near zero on a busy GPU: the work uses no tensor cores or "
            "waits for data.",
            Unit.RATIO,
            Query(_devices(q.TENSOR), DEVICE_LEGEND),
        ),
        graph(
            "Memory used per GPU",
            "Framebuffer in use as a share of what pods can use. Frameworks keep what they once took: a high value "
            "is not yet a need.",
            Unit.RATIO,
            Query(_devices("gpu_instance:memory_used:ratio"), DEVICE_LEGEND),
        ),
        graph(
            "Memory bandwidth per GPU",
            "Share of time in which the memory interface was busy. High with low tensor activity: bound by memory.",
            Unit.RATIO,
            Query(_devices("gpu_instance:dram_active:ratio"), DEVICE_LEGEND),
        ),
    ),
)

_HELD_BY = (
    f"max by ({q.DEVICE}, namespace, pod, container, workload, workload_type) ({q.ALLOCATION}{{{NODE}}}) "
    f"* on ({q.DEVICE}) group_left (gpu, GPU_I_PROFILE) "
    f"max by ({q.DEVICE}, gpu, GPU_I_PROFILE) ({q.INFO}{{{CHOSEN}}})"
)

HOLDERS = Row(
    "Holders",
    (
        Sized(
            timeline(
                "How many pods hold each GPU",
                "Free, held by one pod, or shared by several. No data: attribution is off or the kubelet does not "
                "answer, which does not mean free.",
                Query(_devices(q.HOLDERS), DEVICE_LEGEND),
                (
                    State(0, "free", Colour.UNKNOWN),
                    State(1, "held", Colour.BUSY),
                    State(2, "shared", Colour.WARNING),
                ),
            ),
            10,
            9,
        ),
        Sized(
            table(
                "Who holds what",
                "One line per container and device. Activity and memory are those of the device: on a shared one they "
                "belong to all of its holders together.",
                (
                    Column("node", "Node"),
                    Column("gpu", "GPU", width=60),
                    Column("GPU_I_PROFILE", "Profile", width=90),
                    Column("GPU_I_ID", "Instance", width=80),
                    Column("namespace", "Namespace"),
                    Column("workload", "Workload"),
                    Column("pod", "Pod"),
                    Column("container", "Container"),
                    Column("Value #B", "Busy", Unit.RATIO, bar=True),
                    Column("Value #C", "Memory", Unit.RATIO, bar=True),
                ),
                _HELD_BY,
                f"{_HELD_BY} * on ({q.DEVICE}) group_left () {q.BUSY}{{{NODE}}}",
                f"{_HELD_BY} * on ({q.DEVICE}) group_left () gpu_instance:memory_used:ratio{{{NODE}}}",
            ),
            14,
            9,
        ),
    ),
)

PHYSICS = Row(
    "Power and temperature",
    sized(
        8,
        8,
        graph(
            "Power per card",
            "What each card draws. Under MIG it belongs to the card, not to an instance.",
            Unit.WATT,
            Query(_cards(q.POWER), CARD_LEGEND),
        ),
        graph(
            "Temperature per card",
            "Temperature of the GPU chip. One card well above its neighbours under equal load: look at its cooling.",
            Unit.CELSIUS,
            Query(_cards(q.TEMPERATURE), CARD_LEGEND),
        ),
        graph(
            "Memory temperature per card",
            "Temperature of the memory; no data on cards that do not report it.",
            Unit.CELSIUS,
            Query(_cards("gpu:memory_temperature:celsius"), CARD_LEGEND),
        ),
    ),
)

INVENTORY = Row(
    "Inventory",
    (
        Sized(
            table(
                "Cards and instances",
                "Every device that the exporter shows, by its identity. Activity and memory of a partitioned card "
                "stand at its instances.",
                (
                    Column("node", "Node"),
                    Column("gpu", "GPU", width=60),
                    Column("model", "Model"),
                    Column("UUID", "UUID", width=330),
                    Column("GPU_I_PROFILE", "Profile", width=90),
                    Column("GPU_I_ID", "Instance", width=80),
                    Column("Value #B", "Holders", Unit.COUNT, width=80),
                    Column("Value #C", "Busy", Unit.RATIO, bar=True),
                    Column("Value #D", "Memory used", Unit.BYTES, width=120),
                    Column("Value #E", "Memory", Unit.BYTES, width=120),
                ),
                f"max by ({q.DEVICE}, gpu, model, GPU_I_PROFILE) ({q.INFO}{{{CHOSEN}}})",
                _devices(q.HOLDERS),
                _devices(q.BUSY),
                _devices(q.USED),
                _devices(q.TOTAL),
            ),
            24,
            8,
        ),
    ),
)

BOARD = Board(
    uid="gpu-node",
    title="GPU node",
    description="What each card and instance of a node does, who holds it, and whether its exporter can be trusted.",
    tags=("node",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to choose nodes from.", f"label_values({q.INFO}, cluster)"),
        variable("node", "Node", "Nodes to show.", f"label_values({q.INFO}{{{CLUSTER}}}, node)", all=False),
        variable("gpu", "GPU", "Cards to show, by index.", f"label_values({q.INFO}{{{NODE}}}, gpu)"),
    ),
    rows=(NOW, ACTIVITY, HOLDERS, PHYSICS, INVENTORY, health.ROW),
    since="now-3h",
    refresh="30s",
)
