"""`gpu-fleet`: how many GPUs there are, who holds them, how busy they are, who wastes and who waits."""

from dashboards import breakdown
from dashboards import queries as q
from dashboards.layout import Row, Sized, sized
from dashboards.panels import bars, datasource, graph, stat, table, to, variable
from dashboards.queries import CLUSTER
from dashboards.style import Board, Colour, Column, Query, State, Unit

NONE_OR_SOME = (State(0, "none", Colour.OK), State(1, "", Colour.WARNING))
RULES_LOADED = "0 * max(global:gpugauge_threshold:value)"
WATCHER_UP = f'0 * max(up{{job="gpugauge-cluster", {CLUSTER}}} == 1)'
TO_NODE = to("gpu-node", node="Node")

NODE_COLUMN = Column("node", "Node", link=TO_NODE)
CLUSTER_COLUMN = Column("cluster", "Cluster", width=110)

NOW = Row(
    "Now",
    (
        *sized(
            3,
            4,
            stat(
                "GPUs",
                "Cards that an exporter shows, however they are partitioned. No data means that no exporter is seen, "
                "not that there are no GPUs.",
                Unit.COUNT,
                f"count({q.cards(CLUSTER)})",
            ),
            stat(
                "Held",
                "Share of the cards of which a pod holds the whole or a part. A low share with a queue below means "
                "that the free ones do not fit what is asked for.",
                Unit.RATIO,
                f"sum({q.held_cards(CLUSTER)}) / count({q.cards(CLUSTER)})",
            ),
            stat(
                "Free",
                "Whole cards that nobody holds. Cards whose holders are unknown count as neither held nor free.",
                Unit.COUNT,
                f"sum(max by ({q.CARD}) ({q.HOLDERS}{{{CLUSTER}}}) == bool 0)",
            ),
            stat(
                "Held but idle",
                "GPUs and MIG instances that are held and were idle for 15 minutes (mean activity under 1 %). The "
                "pods are listed under Who wastes.",
                Unit.COUNT,
                f"sum({q.idle_held(CLUSTER)})",
                (State(0, "none", Colour.OK), State(1, "", Colour.IDLE)),
            ),
            stat(
                "Utilisation of held GPUs",
                "Mean activity of all held GPUs and instances: the busier of compute and video engines. Free ones "
                "do not count, those without a reading neither.",
                Unit.RATIO,
                f"avg({q.while_held(q.BUSY, CLUSTER)})",
            ),
            stat(
                "Tensor activity of held GPUs",
                "Mean share of time in which tensor cores worked, on held GPUs. Training on mixed precision usually "
                "reaches 20 to 60 %; no data means that profiling fields are not collected.",
                Unit.RATIO,
                f"avg({q.while_held(q.TENSOR, CLUSTER)})",
            ),
            stat(
                "Memory used",
                "Framebuffer in use as a share of all framebuffer, free GPUs included.",
                Unit.RATIO,
                f"sum({q.USED}{{{CLUSTER}}}) / sum({q.TOTAL}{{{CLUSTER}}})",
            ),
            stat("Power", "Sum of what all cards draw now.", Unit.WATT, f"sum({q.POWER}{{{CLUSTER}}})"),
        ),
        *sized(
            6,
            3,
            stat(
                "Waiting pods",
                "GPU pods that could be scheduled and do not run. No data means that the watcher does not answer.",
                Unit.COUNT,
                f"sum(workload:gpu_pending_pods:count{{{CLUSTER}}}) or {WATCHER_UP}",
                NONE_OR_SOME,
            ),
            stat(
                "Firing alerts",
                "GPU alerts that fire now; they are listed below. No data means that the rules are not loaded.",
                Unit.COUNT,
                f"count(ALERTS{{{q.FIRING}}}) or {RULES_LOADED}",
                NONE_OR_SOME,
            ),
            stat(
                "Blind nodes",
                "Nodes whose exporter does not answer: their GPUs are missing in every number here. No data means "
                "that Prometheus has no exporter as a target.",
                Unit.COUNT,
                f'sum(max by (cluster, node) (up{{job="gpugauge-node", {CLUSTER}}}) == bool 0)',
                NONE_OR_SOME,
            ),
            stat(
                "Pods below their limit",
                "Pods whose mean activity of 15 minutes is under the limit of their class, warm-up and opt-outs not "
                "considered. They are listed under Who wastes.",
                Unit.COUNT,
                f"sum(avg_over_time(pod:gpu_busy:ratio{{{CLUSTER}}}[15m]) < bool on ({q.POD}) "
                f"pod:gpu_low_utilization_threshold:ratio{{{CLUSTER}}})",
                NONE_OR_SOME,
            ),
        ),
    ),
)

_HELD = f"({q.HOLDERS}{{{CLUSTER}}} > 0)"
_FREE = f"({q.HOLDERS}{{{CLUSTER}}} == 0)"

WHERE = Row(
    "Where the GPUs are",
    (
        Sized(
            graph(
                "What GPUs and instances do",
                "Everything that can be held (cards, or their MIG instances), by what it did at that moment. The parts "
                "add up to all of them; idle is an activity under 1 %.",
                Unit.COUNT,
                Query(f"count({q.while_held(q.BUSY, CLUSTER)} >= {q.IDLE})", "held, busy", Colour.BUSY),
                Query(f"count({q.while_held(q.BUSY, CLUSTER)} < {q.IDLE})", "held, idle", Colour.IDLE),
                Query(
                    f"count({_HELD} unless on ({q.DEVICE}) {q.BUSY}{{{CLUSTER}}})",
                    "held, activity unknown",
                    Colour.WARNING,
                ),
                Query(f"count({q.leaves(CLUSTER)} and on ({q.DEVICE}) {_FREE})", "free", Colour.OK),
                Query(
                    f"count({q.leaves(CLUSTER)} unless on ({q.DEVICE}) {q.HOLDERS}{{{CLUSTER}}})",
                    "holder unknown",
                    Colour.UNKNOWN,
                ),
                stacked=True,
            ),
            12,
            9,
        ),
        Sized(
            graph(
                "Activity of held GPUs",
                "Means over held GPUs and instances: any engine, tensor cores, memory interface. Busy without tensor "
                "activity hints at data loading, small kernels or plain 32-bit arithmetic.",
                Unit.RATIO,
                Query(f"avg({q.while_held(q.BUSY, CLUSTER)})", "any engine", Colour.BUSY),
                Query(f"avg({q.while_held(q.TENSOR, CLUSTER)})", "tensor cores", Colour.CRITICAL),
                Query(f"avg({q.while_held('gpu_instance:dram_active:ratio', CLUSTER)})", "memory", Colour.WARNING),
            ),
            12,
            9,
        ),
    ),
)

_LOW = (
    f"avg_over_time(pod:gpu_busy:ratio{{{CLUSTER}}}[15m]) < on ({q.POD}) "
    f"pod:gpu_low_utilization_threshold:ratio{{{CLUSTER}}}"
)

WASTE = Row(
    "Who wastes",
    (
        Sized(
            table(
                "Low-utilisation pods",
                "Pods whose GPUs were busy less than their limit over 15 minutes: 30 % for training unless an "
                "annotation says otherwise, 1 % where nobody knows the owner; serving and interactive pods have none. "
                "Ask the owner, or set the switches described in the runbook.",
                (
                    Column("namespace", "Namespace"),
                    Column("workload", "Workload"),
                    Column("workload_type", "Type", width=120),
                    Column("pod", "Pod"),
                    CLUSTER_COLUMN,
                    NODE_COLUMN,
                    Column("Value #A", "Busy, 15 min", Unit.RATIO, bar=True, width=150),
                    Column("Value #B", "Limit", Unit.RATIO, width=80),
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
        Sized(
            bars(
                "Idle GPUs by namespace",
                "GPUs and instances that a namespace holds alone and that were idle for 15 minutes. Shared ones are "
                "left out: what they do cannot be told apart by pod.",
                Unit.COUNT,
                Query(
                    f"sum by (namespace) (avg_over_time({q.HELD_BUSY}{{{CLUSTER}}}[15m]) < bool {q.IDLE}) > 0",
                    "{{namespace}}",
                ),
            ),
            6,
            8,
        ),
    ),
)

_OLDEST = f"workload:gpu_pending_oldest:info{{{CLUSTER}}}"

WAIT = Row(
    "Who waits",
    (
        Sized(
            table(
                "Pending workloads",
                "Workloads with GPU pods that could be scheduled and do not run, how long the oldest of them has "
                "waited, and why it waits. Time spent behind a scheduling gate is not counted.",
                (
                    Column("namespace", "Namespace"),
                    Column("workload", "Workload"),
                    Column("workload_type", "Type", width=120),
                    Column("reason", "Reason of the oldest"),
                    Column("pod", "Oldest pod"),
                    Column("Value #A", "Waiting", Unit.DURATION, width=140),
                    Column("Value #B", "Pods", Unit.COUNT, width=70),
                ),
                _OLDEST,
                # x ^ 0 is 1: the value of the info series is an age.
                f"workload:gpu_pending_pods:count{{{CLUSTER}}} * on ({q.WORKLOAD}) group_left (pod, reason) "
                f"({_OLDEST} ^ 0)",
                sort="Waiting",
            ),
            14,
            8,
        ),
        Sized(
            graph(
                "Waiting pods by reason",
                "Where most wait for GPUs, more GPUs or better packing help; selectors, taints and images are for the "
                "owner to mend.",
                Unit.COUNT,
                Query(f"sum by (reason) (workload:gpu_pending_pods_by_reason:count{{{CLUSTER}}})", "{{reason}}"),
                stacked=True,
            ),
            10,
            8,
        ),
    ),
)

BOARD = Board(
    uid="gpu-fleet",
    title="GPU fleet overview",
    description="How many GPUs there are, who holds them, how busy they are, who wastes and who waits.",
    tags=("fleet",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to count.", f"label_values({q.INFO}, cluster)"),
    ),
    rows=(NOW, WHERE, WASTE, WAIT, *breakdown.ROWS),
)
