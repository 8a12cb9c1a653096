"""Records and pages that the cluster tests start from."""

from dataclasses import replace
from typing import Any

import msgspec

from exporter.cluster.kubernetes import conversion, wire
from exporter.cluster.kubernetes.records import Node, Pod, Switches
from exporter.cluster.kubernetes.schedulable_since import with_since
from exporter.cluster.view import View
from exporter.gpu_names import gpu_resources

GPUS = gpu_resources()
NOW = 1_800_000_000.0
FAILED = "0/5 nodes are available: "
PREEMPTION = " preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."


def pod(given: dict[str, Any], *, seen: float = NOW) -> Pod:
    """The record of a pod that is first seen now."""
    found = conversion.pod(msgspec.convert(given, wire.Pod), GPUS)
    assert found is not None
    return with_since(found, None, seen)


def node(given: dict[str, Any]) -> Node:
    found = conversion.node(msgspec.convert(given, wire.Node), GPUS)
    assert found is not None
    return found


def view(
    pods: list[dict[str, Any]] | None = None,
    nodes: list[dict[str, Any]] | None = None,
    namespaces: dict[str, Switches] | None = None,
) -> View:
    """A view in which what is not given is not known."""
    empty = View(NOW, GPUS)
    return replace(
        empty,
        pods=None if pods is None else tuple(pod(each) for each in pods),
        nodes=None if nodes is None else tuple(node(each) for each in nodes),
        namespaces=namespaces,
    )


def page(families: list[Any]) -> dict[str, float]:
    """Samples by series as they would stand on the page; a series that comes twice is a failure."""
    series: dict[str, float] = {}
    for family in families:
        for labels, value in family.samples:
            assert tuple(name for name, _ in labels.pairs) == family.metric.labels
            key = family.metric.name + labels.text
            assert key not in series
            series[key] = value
    return series
