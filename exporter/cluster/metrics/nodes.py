"""Families about nodes with GPUs: what they have, what is taken, and whether more can come."""

from collections import Counter
from collections.abc import Iterable, Mapping

from exporter.cluster.kubernetes.records import Amounts, Node
from exporter.cluster.scheduling.free_capacity import Requested, free_on, requested, usable
from exporter.cluster.view import View
from exporter.gpu_names import spelled
from exporter.identity_labels import LabelPairs
from exporter.metric import Family, Kind, Labels, Metric, Value

_LABELS = ("node", "resource", "model")
CAPACITY = Metric("gpugauge_node_gpu_capacity", Kind.GAUGE, "GPUs that the kubelet knows, healthy or not.", _LABELS)
ALLOCATABLE = Metric("gpugauge_node_gpu_allocatable", Kind.GAUGE, "Healthy GPUs that pods can be given.", _LABELS)
REQUESTED = Metric(
    "gpugauge_node_gpu_requested", Kind.GAUGE, "GPUs that pods on the node hold by the scheduler's rule.", _LABELS
)
FREE = Metric("gpugauge_node_gpu_free", Kind.GAUGE, "Allocatable GPUs that no pod on the node holds.", _LABELS)
SCHEDULABLE = Metric(
    "gpugauge_node_gpu_schedulable", Kind.GAUGE, "Whether the node is ready and not cordoned.", ("node",)
)
INFO = Metric(
    "gpugauge_node_info",
    Kind.GAUGE,
    "Nodes with GPUs, as their labels describe them.",
    ("node", "model", "gpu_count", "sharing", "mig_strategy", "pool"),
)
METRICS = (CAPACITY, ALLOCATABLE, REQUESTED, FREE, SCHEDULABLE, INFO)

Samples = list[tuple[Labels, Value]]


def node_families(view: View) -> list[Family]:
    """Nothing while the nodes are not known; no requests and no free devices while the pods are not."""
    if view.nodes is None:
        return []
    nodes = sorted(view.nodes, key=lambda node: node.name)
    return [
        _family(CAPACITY, ((node, node.capacity) for node in nodes), view),
        _family(ALLOCATABLE, ((node, node.allocatable) for node in nodes), view),
        *_use(nodes, view),
        Family(SCHEDULABLE, [(view.label((("node", node.name),)), int(usable(node))) for node in nodes]),
        Family(INFO, [(view.label(_info(node)), 1) for node in nodes]),
    ]


def _use(nodes: list[Node], view: View) -> list[Family]:
    if view.pods is None:
        return []
    held = requested(view.pods)
    beside = _unlisted(nodes, held)
    return [
        _family(REQUESTED, ((node, _requested_on(node, held, beside)) for node in nodes), view),
        _family(FREE, ((node, free_on(node, held)) for node in nodes), view),
    ]


def _unlisted(nodes: list[Node], held: Requested) -> Mapping[str, list[str]]:
    """Resources by node that pods hold and the node no longer lists, as when a device plugin has gone."""
    listed = {(node.name, name) for node in nodes for name, _ in (*node.capacity, *node.allocatable)}
    beside: dict[str, list[str]] = {}
    for name, resource in held.keys() - listed:
        beside.setdefault(name, []).append(resource)
    return beside


def _requested_on(node: Node, held: Requested, beside: Mapping[str, list[str]]) -> Amounts:
    names = {name for name, _ in (*node.capacity, *node.allocatable)} | set(beside.get(node.name, ()))
    return tuple((name, held.get((node.name, name), 0)) for name in sorted(names))


def _family(metric: Metric, found: Iterable[tuple[Node, Amounts]], view: View) -> Family:
    """One sample per node and resource; two names that labels spell alike add up."""
    samples: Samples = []
    for node, amounts in found:
        sums: Counter[str] = Counter()
        for name, count in amounts:
            sums[spelled(name)] += count
        for resource, count in sums.items():
            pairs = (("node", node.name), ("resource", resource), ("model", node.described.model))
            samples.append((view.label(pairs), count))
    return Family(metric, samples)


def _info(node: Node) -> LabelPairs:
    said = node.described
    return (
        ("node", node.name),
        ("model", said.model),
        ("gpu_count", said.gpu_count),
        ("sharing", said.sharing),
        ("mig_strategy", said.mig_strategy),
        ("pool", said.pool),
    )
