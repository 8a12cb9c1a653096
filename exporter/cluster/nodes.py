"""Families about nodes with GPUs: what they have, what is taken, and whether more can come."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from exporter.cluster.record import Amounts, Node
from exporter.cluster.resources import spelled
from exporter.cluster.room import Requested, free_on, requested, usable
from exporter.cluster.view import View
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

_SUFFIX = re.compile(r"(?:-MIG-(?:INVALID|\d+[cg]\..+))?(?:-SHARED)?$", re.ASCII)
_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
"""Labels by which the usual providers and autoscalers name a group of nodes."""

Samples = list[tuple[Labels, Value]]
ByLabels = Counter[tuple[str, str, str]]


def node_families(view: View) -> list[Family]:
    """Nothing while the nodes are not known; no requests and no free devices while the pods are not."""
    if view.nodes is None:
        return []
    nodes = sorted(view.nodes, key=lambda node: node.name)
    described = {node.name: dict(zip(node.labels[::2], node.labels[1::2], strict=True)) for node in nodes}
    models = {name: model(labels) for name, labels in described.items()}
    return [
        _family(CAPACITY, ((node, node.capacity) for node in nodes), models),
        _family(ALLOCATABLE, ((node, node.allocatable) for node in nodes), models),
        *_use(nodes, view, models),
        Family(SCHEDULABLE, [(Labels((("node", node.name),)), int(usable(node))) for node in nodes]),
        Family(INFO, [(_info(name, labels), 1) for name, labels in described.items()]),
    ]


def _use(nodes: list[Node], view: View, models: Mapping[str, str]) -> list[Family]:
    if view.pods is None:
        return []
    held = requested(view.pods)
    beside = _unlisted(nodes, held)
    return [
        _family(REQUESTED, ((node, _requested_on(node, held, beside)) for node in nodes), models),
        _family(FREE, ((node, free_on(node, held)) for node in nodes), models),
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


def _family(metric: Metric, found: Iterable[tuple[Node, Amounts]], models: Mapping[str, str]) -> Family:
    """One sample per node and resource; two names that labels spell alike add up."""
    sums: ByLabels = Counter()
    for node, amounts in found:
        for name, count in amounts:
            sums[node.name, spelled(name), models[node.name]] += count
    return Family(metric, [(Labels(tuple(zip(_LABELS, key, strict=True))), count) for key, count in sums.items()])


def model(labels: Mapping[str, str]) -> str:
    """The board's name as the node exporter writes it; empty where GPU feature discovery has not labelled the node.

    `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED` is `NVIDIA-A100-SXM4-40GB`.
    """
    return _SUFFIX.sub("", labels.get("nvidia.com/gpu.product", "").replace(" ", "-"))


def _info(name: str, labels: Mapping[str, str]) -> Labels:
    return Labels(
        (
            ("node", name),
            ("model", model(labels)),
            ("gpu_count", labels.get("nvidia.com/gpu.count", "")),
            ("sharing", _sharing(labels)),
            ("mig_strategy", labels.get("nvidia.com/mig.strategy", "")),
            ("pool", next((labels[key] for key in _POOLS if labels.get(key)), "")),
        )
    )


def _sharing(labels: Mapping[str, str]) -> str:
    """How GPUs are shared, in the words of `gpugauge_allocation_info`."""
    strategy = labels.get("nvidia.com/gpu.sharing-strategy", "")
    words = {"none": "exclusive", "time-slicing": "time-slicing", "mps": "mps"}
    return words.get(strategy, "unknown")
