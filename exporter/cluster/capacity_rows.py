"""The rows of the status page about capacity: GPUs by model and resource, summed over the nodes. No I/O."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.cluster.metrics import capacity, nodes
from exporter.metric import AnyFamily
from exporter.status_page.content import Cell, absent, text

COLUMNS = (
    "Model",
    "Resource",
    "Nodes",
    "Allocatable",
    "Requested",
    "Free",
    "Largest free block",
    "Not schedulable",
    "Stranded",
)


@dataclass(slots=True)
class ModelCapacity:
    """Devices of one model and resource on all nodes."""

    nodes: int = 0
    allocatable: int = 0
    requested: int = 0
    free: int = 0
    largest_block: int = 0
    """Free on one node that takes pods, at most."""
    unschedulable: int = 0
    """Free on nodes that are cordoned or not ready."""
    stranded: Counter[str] = field(default_factory=Counter)
    """Free and without what a pod needs besides, by what the node lacks."""


def capacity_rows(families: Mapping[str, AnyFamily]) -> list[tuple[Cell, ...]]:
    """One row per model and resource, as COLUMNS. What pods request is absent while these are not known."""
    known = nodes.FREE.name in families
    return [
        (
            text(model) if model else absent("no label names it"),
            text(resource),
            text(str(each.nodes)),
            text(str(each.allocatable)),
            *_of_pods(each, known=known),
        )
        for (model, resource), each in sorted(_sums(families).items())
    ]


def _of_pods(each: ModelCapacity, *, known: bool) -> tuple[Cell, ...]:
    if not known:
        return (absent("the pods are not known"),) * 5
    lacking = ", ".join(sorted(each.stranded))
    return (
        text(str(each.requested)),
        text(str(each.free)),
        text(str(each.largest_block)),
        text(str(each.unschedulable), note="their nodes are cordoned or not ready" if each.unschedulable else ""),
        text(str(each.stranded.total()), note=f"their nodes lack: {lacking}" if lacking else ""),
    )


def _sums(families: Mapping[str, AnyFamily]) -> dict[tuple[str, str], ModelCapacity]:
    sums: dict[tuple[str, str], ModelCapacity] = defaultdict(ModelCapacity)
    models: dict[str, str] = {}
    for (node, resource, model), value in _values(families, nodes.ALLOCATABLE.name):
        models[node] = model
        sums[model, resource].nodes += 1
        sums[model, resource].allocatable += value
    for (_, resource, model), value in _values(families, nodes.REQUESTED.name):
        sums[model, resource].requested += value
    usable = {node for (node,), value in _values(families, nodes.SCHEDULABLE.name) if value}
    for (node, resource, model), value in _values(families, nodes.FREE.name):
        sums[model, resource].free += value
        if node not in usable:
            sums[model, resource].unschedulable += value
    for (resource, model), value in _values(families, capacity.LARGEST_FREE_BLOCK.name):
        sums[model, resource].largest_block = value
    for (node, resource, blocker), value in _values(families, capacity.STRANDED.name):
        sums[models.get(node, ""), resource].stranded[blocker] += value
    return sums


def _values(families: Mapping[str, AnyFamily], name: str) -> list[tuple[tuple[str, ...], int]]:
    """Label values in the order in which the metric declares them, and the sample, a whole number."""
    samples = families[name].samples if name in families else ()
    return [(labels.values, int(value)) for labels, value in samples]
