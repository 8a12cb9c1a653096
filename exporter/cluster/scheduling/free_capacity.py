"""Computes the free GPUs of nodes, and groups nodes that are equal for every pending pod except for their free GPUs.

Ten thousand nodes differ in a few ways that matter to the pending pods. Comparing each pod with groups instead of
nodes makes a collection short.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Amounts, Node, Pod
from exporter.cluster.scheduling.node_selection import by_name, keys_of

Requested = Mapping[tuple[str, str], int]
"""Devices that pods request, by (node, resource name)."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are equal for all pending pods except for their free devices."""

    name: str
    """The node's name where a pending pod selects nodes by name; else empty."""
    labels: Mapping[str, str]
    """Only those whose keys a pending pod selects nodes by."""
    taints: tuple[tuple[str, str, str], ...]
    schedulable: bool
    resources: frozenset[str]
    """The resources of which each node has at least one allocatable device."""
    free: frozenset[Amounts]
    """The distinct amounts of free devices on one node."""


def requested(pods: Iterable[Pod]) -> Requested:
    """Sum the devices that pods on each node request. A pod being deleted counts until it is gone."""
    requests: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        if pod.node:
            for name, count in pod.requests:
                requests[pod.node, name] += count
    return requests


def free_on(node: Node, requests: Requested) -> Amounts:
    """Return allocatable minus requested devices; 0 where unhealthy devices leave fewer than are requested."""
    return tuple((name, max(0, count - requests.get((node.name, name), 0))) for name, count in node.allocatable)


def node_groups(nodes: Sequence[Node], requests: Requested, pending: Iterable[Pod]) -> tuple[NodeGroup, ...]:
    """Group the nodes by everything that the scheduling constraints of these pending pods can distinguish."""
    constraints = {pod.constraints for pod in pending}
    keys = frozenset[str]().union(*(keys_of(each) for each in constraints))
    named = any(by_name(each) for each in constraints)
    free: dict[tuple[object, ...], set[Amounts]] = {}
    first: dict[tuple[object, ...], tuple[Node, dict[str, str]]] = {}
    for node in nodes:
        labels = _with_keys(node, keys)
        group = (node.name if named else "", tuple(labels.items()), node.taints, schedulable(node), _offered(node))
        first.setdefault(group, (node, labels))
        free.setdefault(group, set()).add(free_on(node, requests))
    return tuple(
        NodeGroup(
            node.name if named else "", labels, node.taints, schedulable(node), _offered(node), frozenset(free[group])
        )
        for group, (node, labels) in first.items()
    )


def schedulable(node: Node) -> bool:
    """Whether the node is ready and not cordoned."""
    return node.ready and not node.cordoned


def _with_keys(node: Node, keys: frozenset[str]) -> dict[str, str]:
    """The node's labels that have one of these keys, sorted."""
    if not keys:
        return {}
    pairs = zip(node.labels[::2], node.labels[1::2], strict=True)
    return dict(sorted((key, value) for key, value in pairs if key in keys))


def _offered(node: Node) -> frozenset[str]:
    return frozenset(name for name, count in node.allocatable if count)
