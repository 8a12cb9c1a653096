"""What is free on the nodes with GPUs, and these nodes in groups of equals.

Ten thousand nodes differ in a few ways that matter to the waiting pods; judging each pod against groups instead of
nodes keeps a pass short.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Amounts, Node, Pod
from exporter.cluster.scheduling.node_selection import by_name, keys_of

Requested = Mapping[tuple[str, str], int]
"""Devices that pods hold, by (node, resource name)."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are equal to all waiting pods but for what is free on them."""

    name: str
    """The node's name where a waiting pod chooses by name; else empty."""
    labels: Mapping[str, str]
    """Only the keys that a waiting pod chooses by."""
    taints: tuple[tuple[str, str, str], ...]
    usable: bool
    resources: frozenset[str]
    """What the nodes offer at least one device of."""
    free: frozenset[Amounts]
    """Each different amount of free devices on one node."""


def requested(pods: Iterable[Pod]) -> Requested:
    """Devices that pods hold on each node. A pod being deleted holds them until it is gone."""
    held: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        if pod.node:
            for name, count in pod.requests:
                held[pod.node, name] += count
    return held


def free_on(node: Node, held: Requested) -> Amounts:
    """Devices on a node that no pod holds; none where unhealthy devices leave less than is held."""
    return tuple((name, max(0, count - held.get((node.name, name), 0))) for name, count in node.allocatable)


def node_groups(nodes: Sequence[Node], held: Requested, waiting: Iterable[Pod]) -> tuple[NodeGroup, ...]:
    """The nodes in groups, as far as these waiting pods can tell them apart."""
    needs = {pod.needs for pod in waiting}
    keys = frozenset[str]().union(*(keys_of(each) for each in needs))
    named = any(by_name(each) for each in needs)
    free: dict[tuple[object, ...], set[Amounts]] = {}
    first: dict[tuple[object, ...], tuple[Node, dict[str, str]]] = {}
    for node in nodes:
        labels = _chosen(node, keys)
        offered = frozenset(name for name, count in node.allocatable if count)
        kind = (node.name if named else "", tuple(labels.items()), node.taints, usable(node), offered)
        first.setdefault(kind, (node, labels))
        free.setdefault(kind, set()).add(free_on(node, held))
    return tuple(_group(node.name if named else "", node, labels, free[kind]) for kind, (node, labels) in first.items())


def _chosen(node: Node, keys: frozenset[str]) -> dict[str, str]:
    if not keys:
        return {}
    pairs = zip(node.labels[::2], node.labels[1::2], strict=True)
    return dict(sorted((key, value) for key, value in pairs if key in keys))


def _group(name: str, node: Node, labels: dict[str, str], free: set[Amounts]) -> NodeGroup:
    offered = frozenset(resource for resource, count in node.allocatable if count)
    return NodeGroup(name, labels, node.taints, usable(node), offered, frozenset(free))


def usable(node: Node) -> bool:
    """Ready and not cordoned."""
    return node.ready and not node.cordoned
