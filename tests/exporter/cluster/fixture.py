"""Records, views and helpers that the cluster tests start from."""

from dataclasses import replace
from typing import Any

import msgspec

from exporter.cluster.kubernetes.converting import conversion
from exporter.cluster.kubernetes.objects import wire
from exporter.cluster.kubernetes.objects.records import Node, Overrides, Pod
from exporter.cluster.kubernetes.pods.schedulable_since import with_since
from exporter.cluster.scheduling.keeping.history import ClusterHistory
from exporter.cluster.view import ClusterView, with_pending
from exporter.gpu_names import gpu_resources
from exporter.metric import Family

GPUS = gpu_resources()
NOW = 1_800_000_000.0


def pod(given: dict[str, Any], *, seen: float = NOW) -> Pod:
    """The record of a pod that is first seen at this time."""
    found = conversion.pod(msgspec.convert(given, wire.WirePod), GPUS)
    assert found is not None
    return with_since(found, None, seen)


def node(given: dict[str, Any]) -> Node:
    found = conversion.node(msgspec.convert(given, wire.WireNode), GPUS)
    assert found is not None
    return found


def view(
    pods: list[dict[str, Any]] | None = None,
    nodes: list[dict[str, Any]] | None = None,
    namespaces: dict[str, Overrides] | None = None,
) -> ClusterView:
    """A view in which everything that is not given is unknown."""
    known = replace(
        ClusterView(NOW, GPUS),
        pods=None if pods is None else tuple(pod(each) for each in pods),
        nodes=None if nodes is None else tuple(node(each) for each in nodes),
        namespaces=namespaces,
    )
    return with_pending(known, ClusterHistory())


def exposed(families: list[Family]) -> dict[str, float]:
    """Values by series as the exposition writes them. Fails on a series that comes twice or lacks a label."""
    series: dict[str, float] = {}
    for family in families:
        for labels, value in family.samples:
            assert tuple(name for name, _ in labels.pairs) == family.metric.schema.names
            key = family.metric.name + labels.text
            assert key not in series
            series[key] = value
    return series
