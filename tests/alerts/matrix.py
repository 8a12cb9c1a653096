"""The cases of GPUPodLowUtilization: what runs, what is measured, and which pods fire at which minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.alerts.fleet import FLAVOURS, Card, Flavour, Node, Pod, always
from tests.alerts.promtool import Scene

ALERT = "GPUPodLowUtilization"
OWN = tuple(flavour.name for flavour in FLAVOURS if flavour.own)
STOCK = tuple(flavour.name for flavour in FLAVOURS if not flavour.own)
ALL = (*OWN, *STOCK)

P = frozenset({"p"})
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Row:
    name: str
    cards: tuple[Card, ...]
    firing: Mapping[float, frozenset[str]]
    pods: tuple[Pod, ...] = (Pod(),)
    namespace_opt_out: str = ""
    flavours: tuple[str, ...] = field(default=ALL)


def never(*minutes: float) -> dict[float, frozenset[str]]:
    return dict.fromkeys(minutes or (25, 36, 50, 75), NOBODY)


def idle(**more: object) -> Card:
    return Card(always(0), **more)  # type: ignore[arg-type]


def cycle(pattern: str) -> str:
    return " ".join([pattern] * 6)


FIRES = {34.0: NOBODY, 36.0: P, 60.0: P}
RENEWED = (("uid-1", "1x99 stale"), ("uid-2", "_x100 1x80"))
BLIND = cycle("0.1x11 stale _x16")
"""Six minutes of low samples, then nine minutes of none; the real load is unknown."""

ROWS = (
    Row("01-busy", (Card(always(0.9)),), never()),
    Row("02-idle", (idle(),), {10: NOBODY, 25: NOBODY, 34: NOBODY, 36: P, 75: P}),
    Row("03-equal", (Card(always(0.3)),), never()),
    Row("04-just-below", (Card(always(0.29)),), FIRES),
    Row("05-burst-of-5", (Card(cycle("1x9 0x19")),), never(*(30 + 0.5 * n for n in range(0, 60, 3)))),
    Row("06-burst-of-3", (Card(cycle("1x5 0x23")),), dict.fromkeys([36 + 0.5 * n for n in range(0, 60, 3)], P)),
    Row("07-free", (idle(holders=()),), never(), pods=()),
    Row(
        "08-gap",
        (Card("0x79 _x14 0x90", present="1x79 _x14 1x90"),),
        {39: P, 41: P, 43: P, 46: P, 46.5: P, 48: P, 52: P, 60: P},
    ),
    Row(
        "08-short-outage",
        (Card("0x79 stale _x3 0x100", present="1x79 stale _x3 1x100"),),
        {39: P, 41: P, 43: P, 50: P, 60: P},
    ),
    Row("09-blind", (Card("0.9x99 " + BLIND),), never(40, 52, 56, 57.5, 60, 67, 71, 75)),
    Row(
        "10-shared",
        (Card(always(0.05), holders=("p", "q")),),
        never(),
        pods=(Pod(), Pod("q")),
    ),
    Row(
        "11-mig",
        (
            Card(always(0.02), util=0, gi="1", board=0),
            Card(always(0.95), util=0, gi="2", board=0, holders=("q",)),
        ),
        FIRES,
        pods=(Pod(), Pod("q")),
    ),
    Row("11-mig-video-of-the-board", (Card(always(0.02), encoder=80, gi="1"),), FIRES),
    Row("12-mig-blind", (Card(util=0, gi="1"),), never()),
    Row("13-one-of-eight", (Card(always(0.95)), *[idle()] * 7), FIRES),
    Row("14-seven-of-eight", (*[Card(always(0.95))] * 7, idle()), never()),
    Row("15-pod-opt-out", (idle(),), never(), pods=(Pod(opted_out=ALERT),)),
    Row("15-pod-opt-out-by-key", (idle(),), never(), pods=(Pod(opted_out="low-utilization"),)),
    Row("15-opt-out-of-another", (idle(),), FIRES, pods=(Pod(opted_out="GPUWorkloadPending"),)),
    Row("16-namespace-opt-out", (idle(),), never(), namespace_opt_out="low-utilization"),
    Row("16-namespace-opt-out-of-another", (idle(),), FIRES, namespace_opt_out="GPUWorkloadPending"),
    Row(
        "17-override",
        (Card(always(0.1), holders=("q",)), Card(always(0.1))),
        FIRES,
        pods=(Pod(), Pod("q", override=0.05)),
    ),
    Row("17-override-upwards", (Card(always(0.4)),), FIRES, pods=(Pod(override=0.5),)),
    Row("17-override-of-serving", (idle(),), never(), pods=(Pod(override=0.5, cls="serving"),)),
    Row("18-encoder", (Card(always(0.02), encoder=80),), never()),
    Row("18-encoder-idle", (Card(always(0.02), encoder=1),), FIRES),
    Row(
        "19-classic-only",
        (Card(util=85, holders=("q",)), Card(util=3)),
        FIRES,
        pods=(Pod(), Pod("q")),
    ),
    Row(
        "20-replaced",
        (idle(),),
        {45: P, 58: P, 62: NOBODY, 70: NOBODY, 80: NOBODY, 84: NOBODY, 86.5: P},
        pods=(Pod(start="0x99 3000x90", uids=RENEWED),),
    ),
    Row("21-two-watchers", (idle(),), FIRES, pods=(Pod(watchers=2),)),
    Row("21-two-state-metrics", (idle(),), FIRES, pods=(Pod(watchers=0, ksm=2),)),
    Row("22-finished", (idle(),), never(), pods=(Pod(phases={"Succeeded": always(1)}),)),
    Row(
        "22-finishes",
        (idle(),),
        {38: P, 52: NOBODY, 75: NOBODY},
        pods=(Pod(phases={"Running": "1x79 stale", "Succeeded": "_x80 1x90"}),),
    ),
    Row("22-state-metrics-lags", (idle(),), never(), pods=(Pod(phases={"Succeeded": always(1)}, ksm=1),)),
    Row("22-finished-without-watcher", (idle(),), never(), pods=(Pod(watchers=0, ksm=1, ksm_phase="Succeeded"),)),
    Row("23-loads", (Card("0x39 0.8x140"),), never(20, 25, 30, 32, 36, 60)),
    Row("24-works-until-minute-50", (Card("0.9x99 0x80"),), {36: NOBODY, 60: NOBODY, 69: P}),
    Row("24-resumes-at-minute-50", (Card("0x99 0.9x80"),), {45: P, 54: P, 64: P, 66: NOBODY}),
    Row("24-low-for-less-than-5-minutes", (Card(cycle("1x9 0x21")),), never(*(36 + n for n in range(30)))),
    Row("24-lost-card", (idle(), Card()), never(), flavours=OWN),
    Row("25-serving", (idle(),), never(), pods=(Pod(cls="serving"),)),
    Row("25-interactive", (idle(),), never(), pods=(Pod(cls="interactive"),)),
    Row("26-unknown-owner-little", (Card(always(0.1)),), never(), pods=(Pod(watchers=0, ksm=1),)),
    Row("26-unknown-owner-idle", (Card(always(0.009)),), FIRES, pods=(Pod(watchers=0, ksm=1),)),
    Row("26-unknown-class-little", (Card(always(0.1)),), never(), pods=(Pod(cls=""),)),
    Row("26-unknown-class-idle", (Card(always(0.009)),), FIRES, pods=(Pod(cls=""),)),
    Row("27-no-engine-but-video", (Card(encoder=0),), never()),
    Row("28-sidecar", (idle(),), FIRES, pods=(Pod(containers=("main", "sidecar")),), flavours=OWN),
    Row(
        "29-two-exporters",
        (Card(always(0), extra_flavour=FLAVOURS[4]),),
        FIRES,
        flavours=OWN,
    ),
    Row(
        "29-two-exporters-disagree",
        (Card(always(0), holders=(), extra_flavour=FLAVOURS[4], extra_holder="p"),),
        never(),
        flavours=OWN,
    ),
    Row(
        "29-holder-without-a-name",
        (idle(unlisted_holders=1),),
        never(),
        flavours=OWN,
    ),
    Row(
        "29-two-watchers-disagree",
        (idle(),),
        FIRES,
        pods=(Pod(watchers=2, priorities=("", "high")),),
    ),
    Row("31-owner-on-page", (idle(),), FIRES, pods=(Pod(watchers=0, ksm=1, owner_on_page="nightly"),)),
    Row("30-never-started", (idle(),), never(), pods=(Pod(start=""),)),
)
"""Rows 01 to 23 are the matrix; the others hold what it leaves open.

10 on a stock page needs its virtual-GPU mode: otherwise it names one of the sharers as the holder.
"""


def build(scene: Scene, row: Row, flavour: Flavour) -> None:
    """The row's series and what must fire, in a namespace of its own."""
    node = Node(scene, flavour, row.name)
    node.up()
    for pod in row.pods:
        node.pod(pod)
    if row.namespace_opt_out:
        node.opt_out_namespace(row.namespace_opt_out)
    for number, card in enumerate(row.cards):
        node.card(number, card)
    if row.name == "29-two-exporters-disagree":
        scene.expect(f'namespace_pod_gpu:gpugauge_allocation:info{{namespace="{node.namespace}"}}', 36)
    if row.name == "02-idle":
        expect_public_series(scene, node, row.pods[0])
    for minute, firing in row.firing.items():
        expect_firing(scene, node, minute, [pod for pod in row.pods if pod.name in firing])


def expect_firing(scene: Scene, node: Node, minute: float, pods: list[Pod]) -> None:
    """Exactly one alert for each of the pods, with its owner, and none for any other of the namespace."""
    scene.expect_firing(ALERT, node.namespace, minute, [node.workload(pod) for pod in pods])


def expect_public_series(scene: Scene, node: Node, pod: Pod) -> None:
    """The join series for other people's queries, with every label; only our pages know the pod's uid."""
    who = {"cluster": node.cluster, "namespace": node.namespace}
    uid = "uid-1" if node.flavour.own or node.flavour.uid else ""
    device = {"UUID": f"GPU-{node.namespace}-0", "container": "main", "uid": uid}
    allocation = "namespace_pod_gpu:gpugauge_allocation:info"
    gpu_pod = "namespace_pod:gpugauge_gpu_pod:info"
    chosen = f'{{namespace="{node.namespace}"}} > bool 0'
    scene.expect(allocation + chosen, 36, ({**who, **device, **node.workload(pod)}, 1.0))
    known = {"class": pod.cls, "uid": "uid-1"}
    scene.expect(gpu_pod + chosen, 36, ({**who, **known, **node.workload(pod)}, 1.0))


def claimed_by_two_nodes(scene: Scene, flavour: Flavour) -> None:
    """A pod moved, and its old node still lists it: one alert, whichever node it names."""
    nodes = [Node(scene, flavour, "51-moved"), Node(scene, flavour, "51-moved")]
    nodes[1].node += "-old"
    nodes[0].pod(Pod())
    for number, node in enumerate(nodes):
        node.uids, node.containers, node.owners = nodes[0].uids, nodes[0].containers, nodes[0].owners
        node.card(number, Card(always(0)))
    expression = f'count by (namespace) (ALERTS{{alertname="{ALERT}", namespace="{nodes[0].namespace}"}})'
    scene.expect(expression, 40, ({"namespace": nodes[0].namespace}, 1.0))


def exporter_is_no_holder(scene: Scene, flavour: Flavour) -> None:
    """An idle GPU nobody holds, while kube-state-metrics knows the exporter's own pod as long running."""
    node = Node(scene, flavour, "40-free")
    node.up()
    target = {"pod": "none", **node.target(flavour)}
    state = {"namespace": "monitoring", "pod": target["pod"], "job": "kube-state-metrics", "cluster": node.cluster}
    if flavour.pod_targets:
        scene.add("kube_pod_start_time", state, always(0))
        scene.add("kube_pod_status_phase", {**state, "phase": "Running"}, always(1))
    node.card(0, Card(always(0), holders=()))
    node.card(1, Card(always(0), holders=(), unattributed=True))
    scene.expect(f'ALERTS{{alertname="{ALERT}", node="{node.node}"}}', 60)
    scene.expect(f'namespace_pod_gpu:gpugauge_allocation:info{{node="{node.node}"}}', 60)
    for name in ("pod:gpu_start_timestamp:seconds", "pod:gpu_running:info"):
        scene.expect(f'{name}{{pod="{target["pod"]}"}}', 60)


def same_names_in_two_clusters(scene: Scene, flavour: Flavour) -> None:
    """In one store for two clusters, a pod's twin of the same name is busy."""
    for cluster, engine in (("east", always(0)), ("west", always(0.9))):
        node = Node(scene, flavour, "50-twin", cluster)
        node.pod(Pod())
        node.card(0, Card(engine))
    expression = (
        f'count by (cluster) (ALERTS{{alertname="{ALERT}", alertstate="firing", namespace="{node.namespace}"}})'
    )
    scene.expect(expression, 60, ({"cluster": "east"}, 1.0))


def matrix(*flavours: str, only: tuple[str, ...] = ("",)) -> Scene:
    """The rows (`only`: by the start of their names) of the flavours in one scene, evaluated side by side."""
    scene = Scene()
    for flavour in FLAVOURS:
        if flavour.name in flavours:
            for row in (row for row in ROWS if row.name.startswith(only)):
                if flavour.name in row.flavours:
                    build(scene, row, flavour)
            if "".startswith(only):
                exporter_is_no_holder(scene, flavour)
            if flavour.own and "".startswith(only):
                claimed_by_two_nodes(scene, flavour)
                same_names_in_two_clusters(scene, flavour)
    return scene


def threshold_scene(values: Mapping[str, tuple[float, ...]]) -> Scene:
    """Recorded constants as given, each as often as given, and pods of known and unknown class on either side."""
    scene = Scene()
    for alert, constants in values.items():
        for number, constant in enumerate(constants):
            labels = {"alert": alert, "replica": str(number)}
            scene.add("global:gpugauge_threshold:value", labels, always(constant))
    pods = (
        Pod("at-40"),
        Pod("at-20"),
        Pod("unknown", watchers=0, ksm=1),
        Pod("unknown-idle", watchers=0, ksm=1),
    )
    limits = {alert: max(constants) for alert, constants in values.items()}
    common, idle_limit = limits.get(ALERT, 0.3), limits.get("GPUPodIdle", 0.01)
    node = Node(scene, FLAVOURS[0], "60-thresholds")
    firing = []
    for number, (pod, load) in enumerate(zip(pods, (0.4, 0.2, 0.015, 0.005), strict=True)):
        node.pod(pod)
        node.card(number, Card(always(load), holders=(pod.name,)))
        if load < (idle_limit if pod.name.startswith("unknown") else common):
            firing.append(pod)
    expect_firing(scene, node, 40, firing)
    return scene
