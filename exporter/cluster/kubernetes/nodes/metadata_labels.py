"""Reads from the labels of namespaces and nodes who pays for them and where they stand. No I/O, no state."""

from collections.abc import Mapping

from exporter.cluster.config import NAMESPACE_NAMES, NODE_NAMES, Keys
from exporter.cluster.kubernetes.objects.records import Node


def namespace_values(labels: Mapping[str, str | None], keys: Keys) -> tuple[str, ...]:
    """The values of `NAMESPACE_NAMES`; empty ones where the namespace has no such label."""
    return tuple(labels.get(keys.get(name, "")) or "" for name in NAMESPACE_NAMES)


def node_values(node: Node, keys: Keys) -> tuple[str, ...]:
    """The values of `NODE_NAMES`; empty ones where the node has no such label."""
    labels = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    return tuple(labels.get(keys.get(name, ""), "") for name in NODE_NAMES)
