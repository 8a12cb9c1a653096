"""The cases of GPUPodLowUtilization: pods, measured values, and the pods for which the alert fires at each minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.alerts.fleet import FLAVORS, Flavor, Gpu, Node, Pod, always
from tests.alerts.promtool import RuleFixture

ALERT = "GPUPodLowUtilization"
OWN = tuple(flavor.name for flavor in FLAVORS if flavor.own)
STOCK = tuple(flavor.name for flavor in FLAVORS if not flavor.own)
ALL = (*OWN, *STOCK)

P = frozenset({"p"})
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Row:
    name: str
    gpus: tuple[Gpu, ...]
    firing: Mapping[float, frozenset[str]]
    pods: tuple[Pod, ...] = (Pod(),)
    namespace_exempt_from: str = ""
    flavors: tuple[str, ...] = field(default=ALL)


def never(*minutes: float) -> dict[float, frozenset[str]]:
    return dict.fromkeys(minutes or (25, 36, 50, 75), NONE)


def idle(**more: object) -> Gpu:
    return Gpu(always(0), **more)  # type: ignore[arg-type]


def cycle(pattern: str) -> str:
    return " ".join([pattern] * 6)


FIRES = {34.0: NONE, 36.0: P, 60.0: P}
RENEWED = (("uid-1", "1x99 stale"), ("uid-2", "_x100 1x80"))
GAPS = cycle("0.1x11 stale _x16")
"""Six minutes of low samples, then nine minutes without samples; the real load is unknown."""

ROWS = (
    Row("01-busy", (Gpu(always(0.9)),), never()),
    Row("02-idle", (idle(),), {10: NONE, 25: NONE, 34: NONE, 36: P, 75: P}),
    Row("03-equal", (Gpu(always(0.3)),), never()),
    Row("04-just-below", (Gpu(always(0.29)),), FIRES),
    Row("05-burst-of-5", (Gpu(cycle("1x9 0x19")),), never(*(30 + 0.5 * n for n in range(0, 60, 3)))),
    Row("06-burst-of-3", (Gpu(cycle("1x5 0x23")),), dict.fromkeys([36 + 0.5 * n for n in range(0, 60, 3)], P)),
    Row("07-unallocated", (idle(pods=()),), never(), pods=()),
    Row(
        "08-gap",
        (Gpu("0x79 _x14 0x90", present="1x79 _x14 1x90"),),
        {39: P, 41: P, 43: P, 46: P, 46.5: P, 48: P, 52: P, 60: P},
    ),
    Row(
        "08-short-outage",
        (Gpu("0x79 stale _x3 0x100", present="1x79 stale _x3 1x100"),),
        {39: P, 41: P, 43: P, 50: P, 60: P},
    ),
    Row("09-gaps", (Gpu("0.9x99 " + GAPS),), never(40, 52, 56, 57.5, 60, 67, 71, 75)),
    Row(
        "10-shared",
        (Gpu(always(0.05), pods=("p", "q")),),
        never(),
        pods=(Pod(), Pod("q")),
    ),
    Row(
        "11-mig",
        (
            Gpu(always(0.02), util=0, gi="1", index=0),
            Gpu(always(0.95), util=0, gi="2", index=0, pods=("q",)),
        ),
        FIRES,
        pods=(Pod(), Pod("q")),
    ),
    Row("11-mig-video-of-the-gpu", (Gpu(always(0.02), encoder=80, gi="1"),), FIRES),
    Row("12-mig-unknown", (Gpu(util=0, gi="1"),), never()),
    Row("13-one-of-eight", (Gpu(always(0.95)), *[idle()] * 7), FIRES),
    Row("14-seven-of-eight", (*[Gpu(always(0.95))] * 7, idle()), never()),
    Row("15-pod-exemption", (idle(),), never(), pods=(Pod(exempt_from=ALERT),)),
    Row("15-pod-exemption-by-key", (idle(),), never(), pods=(Pod(exempt_from="low-utilization"),)),
    Row("15-exemption-from-another", (idle(),), FIRES, pods=(Pod(exempt_from="GPUWorkloadPending"),)),
    Row("16-namespace-exemption", (idle(),), never(), namespace_exempt_from="low-utilization"),
    Row("16-namespace-exemption-from-another", (idle(),), FIRES, namespace_exempt_from="GPUWorkloadPending"),
    Row(
        "17-override",
        (Gpu(always(0.1), pods=("q",)), Gpu(always(0.1))),
        FIRES,
        pods=(Pod(), Pod("q", override=0.05)),
    ),
    Row("17-override-upwards", (Gpu(always(0.4)),), FIRES, pods=(Pod(override=0.5),)),
    Row("17-override-of-serving", (idle(),), never(), pods=(Pod(override=0.5, workload_class="serving"),)),
    Row("18-encoder", (Gpu(always(0.02), encoder=80),), never()),
    Row("18-encoder-idle", (Gpu(always(0.02), encoder=1),), FIRES),
    Row(
        "19-classic-only",
        (Gpu(util=85, pods=("q",)), Gpu(util=3)),
        FIRES,
        pods=(Pod(), Pod("q")),
    ),
    Row(
        "20-replaced",
        (idle(),),
        {45: P, 58: P, 62: NONE, 70: NONE, 80: NONE, 84: NONE, 86.5: P},
        pods=(Pod(start="0x99 3000x90", uids=RENEWED),),
    ),
    Row("21-two-watchers", (idle(),), FIRES, pods=(Pod(watchers=2),)),
    Row("21-two-state-metrics", (idle(),), FIRES, pods=(Pod(watchers=0, state_metrics=2),)),
    Row("22-finished", (idle(),), never(), pods=(Pod(phases={"Succeeded": always(1)}),)),
    Row(
        "22-finishes",
        (idle(),),
        {38: P, 52: NONE, 75: NONE},
        pods=(Pod(phases={"Running": "1x79 stale", "Succeeded": "_x80 1x90"}),),
    ),
    Row("22-state-metrics-lags", (idle(),), never(), pods=(Pod(phases={"Succeeded": always(1)}, state_metrics=1),)),
    Row(
        "22-finished-without-watcher",
        (idle(),),
        never(),
        pods=(Pod(watchers=0, state_metrics=1, state_phase="Succeeded"),),
    ),
    Row("23-loads", (Gpu("0x39 0.8x140"),), never(20, 25, 30, 32, 36, 60)),
    Row("24-works-until-minute-50", (Gpu("0.9x99 0x80"),), {36: NONE, 60: NONE, 69: P}),
    Row("24-resumes-at-minute-50", (Gpu("0x99 0.9x80"),), {45: P, 54: P, 64: P, 66: NONE}),
    Row("24-low-for-less-than-5-minutes", (Gpu(cycle("1x9 0x21")),), never(*(36 + n for n in range(30)))),
    Row("24-lost-gpu", (idle(), Gpu()), never(), flavors=OWN),
    Row("25-serving", (idle(),), never(), pods=(Pod(workload_class="serving"),)),
    Row("25-interactive", (idle(),), never(), pods=(Pod(workload_class="interactive"),)),
    Row("26-unknown-owner-little", (Gpu(always(0.1)),), never(), pods=(Pod(watchers=0, state_metrics=1),)),
    Row("26-unknown-owner-idle", (Gpu(always(0.009)),), FIRES, pods=(Pod(watchers=0, state_metrics=1),)),
    Row("26-unknown-class-little", (Gpu(always(0.1)),), never(), pods=(Pod(workload_class=""),)),
    Row("26-unknown-class-idle", (Gpu(always(0.009)),), FIRES, pods=(Pod(workload_class=""),)),
    Row("27-no-engine-but-video", (Gpu(encoder=0),), never()),
    Row("28-sidecar", (idle(),), FIRES, pods=(Pod(containers=("main", "sidecar")),), flavors=OWN),
    Row(
        "29-two-exporters",
        (Gpu(always(0), second_flavor=FLAVORS[4]),),
        FIRES,
        flavors=OWN,
    ),
    Row(
        "29-two-exporters-disagree",
        (Gpu(always(0), pods=(), second_flavor=FLAVORS[4], second_pod="p"),),
        never(),
        flavors=OWN,
    ),
    Row(
        "29-unlisted-pod",
        (idle(unlisted_pods=1),),
        never(),
        flavors=OWN,
    ),
    Row(
        "29-two-watchers-disagree",
        (idle(),),
        FIRES,
        pods=(Pod(watchers=2, priorities=("", "high")),),
    ),
    Row("31-exposed-workload", (idle(),), FIRES, pods=(Pod(watchers=0, state_metrics=1, exposed_workload="nightly"),)),
    Row("30-never-started", (idle(),), never(), pods=(Pod(start=""),)),
)
"""Rows 01 to 23 are the matrix; the others are cases that it leaves open.

Row 10 with dcgm-exporter requires its virtual-GPU mode: without it, it exposes one of the pods that share a device.
"""


def build(fixture: RuleFixture, row: Row, flavor: Flavor) -> None:
    """Add the series of the row and the alerts it expects, in a namespace of its own."""
    node = Node(fixture, flavor, row.name)
    node.up()
    for pod in row.pods:
        node.pod(pod)
    if row.namespace_exempt_from:
        node.exempt_namespace(row.namespace_exempt_from)
    for number, gpu in enumerate(row.gpus):
        node.gpu(number, gpu)
    if row.name == "29-two-exporters-disagree":
        fixture.expect(f'gpugauge_allocation_info{{gpu_namespace="{node.namespace}"}}', 36)
    if row.name == "02-idle":
        expect_public_series(fixture, node, row.pods[0])
    for minute, firing in row.firing.items():
        expect_firing(fixture, node, minute, [pod for pod in row.pods if pod.name in firing])


def expect_firing(fixture: RuleFixture, node: Node, minute: float, pods: list[Pod]) -> None:
    """Expect exactly one alert for each of the pods, with its owner, and none for any other pod of the namespace."""
    fixture.expect_firing(ALERT, node.namespace, minute, [node.workload(pod) for pod in pods])


def expect_public_series(fixture: RuleFixture, node: Node, pod: Pod) -> None:
    """Expect the series that users join with, with all their labels."""
    who = {"cluster": node.cluster, "namespace": node.namespace, "pod": pod.name}
    chosen = f'{{namespace="{node.namespace}"}} > bool -1'
    known = {"workload_class": pod.workload_class}
    fixture.expect("pod:gpu_workload:info" + chosen, 36, ({**who, **known, **node.workload(pod)}, 1.0))
    for name in ("pod:gpu_devices:count", "pod:gpu_busy:ratio", "pod:gpu_low_utilization_threshold:ratio"):
        fixture.expect(name + chosen, 36, (who, 1.0))


def allocated_on_two_nodes(fixture: RuleFixture, flavor: Flavor) -> None:
    """A pod moved, and its old node still exposes it, with a busy device: the node that the watcher knows counts."""
    nodes = [Node(fixture, flavor, "51-moved"), Node(fixture, flavor, "51-moved")]
    nodes[1].node += "-old"
    nodes[0].pod(Pod())
    for number, node in enumerate(nodes):
        node.uids, node.containers, node.workloads = nodes[0].uids, nodes[0].containers, nodes[0].workloads
        node.gpu(number, Gpu(always(0.9 * number)))
    nodes[1].gpu(2, Gpu())
    chosen = f'namespace="{nodes[0].namespace}"'
    who = {"cluster": nodes[0].cluster, "namespace": nodes[0].namespace, "pod": "p"}
    fixture.expect(
        f'count by (namespace, node) (ALERTS{{alertname="{ALERT}", {chosen}}})',
        40,
        ({"namespace": nodes[0].namespace, "node": nodes[0].node}, 1.0),
    )
    fixture.expect(f"pod:gpu_busy:ratio{{{chosen}}} > bool -1", 40, (who, 1.0))
    fixture.expect(f"pod:gpu_devices:count{{{chosen}}} + 0", 40, (who, 1.0))


def labels_missing(fixture: RuleFixture, flavor: Flavor) -> None:
    """An idle device of a pod, and busy ones that lack a label which identifies them: those are left out."""
    node = Node(fixture, flavor, "52-labels-missing")
    node.pod(Pod(watchers=0, state_metrics=1))
    node.gpu(0, Gpu(always(0)))
    ids = {"gpu_namespace": node.namespace, "gpu_pod": "p", "job": "gpugauge-node", "instance": "x:9400"}
    for missing in ("UUID", "node"):
        device = {"UUID": "GPU-other", "node": node.node, "cluster": node.cluster, **ids, missing: ""}
        fixture.add("gpugauge_allocation_info", device, always(1))
        fixture.add("gpugauge_allocation_busy_ratio", device, always(0.9))
        without_value = {**device, "GPU_I_ID": "7"}
        fixture.add("gpugauge_allocation_info", without_value, always(1))
    who = {"cluster": node.cluster, "namespace": node.namespace, "pod": "p"}
    chosen = f'namespace="{node.namespace}"'
    fixture.expect(f"pod:gpu_busy:ratio{{{chosen}}} + 1", 40, (who, 1.0))
    fixture.expect(f"pod:gpu_devices:count{{{chosen}}} + 0", 40, (who, 1.0))


def watchers_disagree(fixture: RuleFixture, flavor: Flavor) -> None:
    """Two watchers give a pod different owners for a moment: it is counted once. A pod without a device not at all."""
    node = Node(fixture, flavor, "53-watchers-disagree")
    node.pod(Pod(exposed_workload="nightly"))
    node.pod(Pod("without-a-device"))
    node.gpu(0, Gpu(always(0)))
    ids = {"gpu_namespace": node.namespace, "gpu_pod": "p", "node": node.node, "workload_class": "training"}
    other = {"workload": "other", "workload_type": "Job", "cluster": node.cluster, "instance": "watcher-9:9410"}
    fixture.add("gpugauge_gpu_pod_info", {**ids, **other}, always(1))
    who = {"cluster": node.cluster, "namespace": node.namespace, "pod": "p"}
    expression = f'count by (cluster, namespace, pod) (pod:gpu_workload:info{{namespace="{node.namespace}"}})'
    fixture.expect(expression, 40, (who, 1.0))


def exporter_has_no_allocation(fixture: RuleFixture, flavor: Flavor) -> None:
    """Idle unallocated GPUs, while kube-state-metrics exposes the exporter's own pod as running for long: no alert."""
    node = Node(fixture, flavor, "40-unallocated")
    node.up()
    target = {"pod": "none", **node.target(flavor)}
    state = {"namespace": "monitoring", "pod": target["pod"], "job": "kube-state-metrics", "cluster": node.cluster}
    if flavor.pod_targets:
        fixture.add("kube_pod_start_time", state, always(0))
        fixture.add("kube_pod_status_phase", {**state, "phase": "Running"}, always(1))
    node.gpu(0, Gpu(always(0), pods=()))
    node.gpu(1, Gpu(always(0), pods=(), allocation_unknown=True))
    fixture.expect(f'ALERTS{{alertname="{ALERT}", node="{node.node}"}}', 60)
    fixture.expect(f'gpugauge_allocation_info{{node="{node.node}"}}', 60)
    for name in ("gpugauge_gpu_pod_start_timestamp_seconds", "gpugauge_gpu_pod_phase"):
        fixture.expect(f'{name}{{gpu_pod="{target["pod"]}"}}', 60)


def same_names_in_two_clusters(fixture: RuleFixture, flavor: Flavor) -> None:
    """Two clusters in one store have pods of the same name, one of them busy: an alert for the other alone."""
    for cluster, engine in (("east", always(0)), ("west", always(0.9))):
        node = Node(fixture, flavor, "50-same-names", cluster)
        node.pod(Pod())
        node.gpu(0, Gpu(engine))
    expression = (
        f'count by (cluster) (ALERTS{{alertname="{ALERT}", alertstate="firing", namespace="{node.namespace}"}})'
    )
    fixture.expect(expression, 60, ({"cluster": "east"}, 1.0))


def matrix(*flavors: str, only: tuple[str, ...] = ("",)) -> RuleFixture:
    """The rows (`only`: by the start of their names) for these flavors, in one fixture."""
    fixture = RuleFixture()
    for flavor in FLAVORS:
        if flavor.name in flavors:
            for row in (row for row in ROWS if row.name.startswith(only)):
                if flavor.name in row.flavors:
                    build(fixture, row, flavor)
            if "".startswith(only):
                exporter_has_no_allocation(fixture, flavor)
            if flavor.own and "".startswith(only):
                allocated_on_two_nodes(fixture, flavor)
                labels_missing(fixture, flavor)
                watchers_disagree(fixture, flavor)
                same_names_in_two_clusters(fixture, flavor)
    return fixture


def threshold_fixture(values: Mapping[str, tuple[float, ...]]) -> RuleFixture:
    """Recorded thresholds, each as often as given, and pods of known and unknown workload class around them."""
    fixture = RuleFixture()
    for alert, constants in values.items():
        for number, constant in enumerate(constants):
            labels = {"alert": alert, "replica": str(number)}
            fixture.add("global:gpugauge_threshold:value", labels, always(constant))
    pods = (
        Pod("at-40"),
        Pod("at-20"),
        Pod("unknown", watchers=0, state_metrics=1),
        Pod("unknown-idle", watchers=0, state_metrics=1),
    )
    limits = {alert: max(constants) for alert, constants in values.items()}
    common, idle_limit = limits.get(ALERT, 0.3), limits.get("GPUPodIdle", 0.01)
    node = Node(fixture, FLAVORS[0], "60-thresholds")
    firing = []
    for number, (pod, load) in enumerate(zip(pods, (0.4, 0.2, 0.015, 0.005), strict=True)):
        node.pod(pod)
        node.gpu(number, Gpu(always(load), pods=(pod.name,)))
        if load < (idle_limit if pod.name.startswith("unknown") else common):
            firing.append(pod)
    expect_firing(fixture, node, 40, firing)
    return fixture
