"""The cases of GPUPodLowUtilization: the rows of the matrix, those of faults, and what no row can say."""

from collections.abc import Mapping

from tests.alerts.fault_rows import FAULT_ROWS
from tests.alerts.fleet import FLAVORS, Flavor, Gpu, Node, Pod, always
from tests.alerts.promtool import RuleFixture
from tests.alerts.rows import ALERT, ROWS, UNKNOWN, Row


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
    """Two watchers give a pod different owners for a moment: it is counted once."""
    node = Node(fixture, flavor, "53-watchers-disagree")
    node.pod(Pod(exposed_workload="nightly"))
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
            for row in (row for row in (*ROWS, *FAULT_ROWS) if row.name.startswith(only)):
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
    common, of_unknown = limits.get(ALERT, 0.3), limits.get(UNKNOWN, 0.3)
    node = Node(fixture, FLAVORS[0], "60-thresholds")
    firing = []
    for number, (pod, load) in enumerate(zip(pods, (0.4, 0.2, 0.015, 0.005), strict=True)):
        node.pod(pod)
        node.gpu(number, Gpu(always(load), pods=(pod.name,)))
        if load < (of_unknown if pod.name.startswith("unknown") else common):
            firing.append(pod)
    expect_firing(fixture, node, 40, firing)
    return fixture
