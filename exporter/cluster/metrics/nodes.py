"""Metrics of GPU nodes: their capacity, what is requested, what is free, and whether pods can be scheduled there."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from exporter.cluster.config import NODE_NAMES, Keys, SeriesLimits
from exporter.cluster.kubernetes.metadata_labels import node_values
from exporter.cluster.kubernetes.records import Amounts, Node
from exporter.cluster.metrics.limits import most_first
from exporter.cluster.scheduling.device_claims import DeviceCount
from exporter.cluster.scheduling.free_capacity import Requested, free_on, schedulable, with_claimable
from exporter.cluster.view import ClusterView
from exporter.gpu_names import resource_label
from exporter.metric import Kind, LargeFamily, Metric, Sample, metric

_LABELS = ("node", "resource", "model")
CAPACITY = metric("gpugauge_node_gpu_capacity", Kind.GAUGE, "GPUs that the kubelet reports, healthy or not.", *_LABELS)
ALLOCATABLE = metric("gpugauge_node_gpu_allocatable", Kind.GAUGE, "Healthy GPUs that pods can be given.", *_LABELS)
REQUESTED = metric(
    "gpugauge_node_gpu_requested",
    Kind.GAUGE,
    "GPUs that pods on the node request, counted as the scheduler does.",
    *_LABELS,
)
FREE = metric("gpugauge_node_gpu_free", Kind.GAUGE, "Allocatable GPUs that no pod on the node requests.", *_LABELS)
SCHEDULABLE = metric("gpugauge_node_gpu_schedulable", Kind.GAUGE, "Whether the node is ready and not cordoned.", "node")
INFO = metric(
    "gpugauge_node_info",
    Kind.GAUGE,
    "Constant 1; one per node with GPUs, with what its labels state.",
    "node",
    "model",
    "gpu_count",
    "sharing",
    "mig_strategy",
    "pool",
    *NODE_NAMES,
)
METRICS = (CAPACITY, ALLOCATABLE, REQUESTED, FREE, SCHEDULABLE, INFO)


def node_families(view: ClusterView, keys: Keys, most: int = SeriesLimits().nodes) -> list[LargeFamily]:
    """The families; none while the nodes are not known, no requested and free GPUs while the pods are not.

    `keys` are those of the labels that say where a node stands. Of more nodes than `most`, those with the most GPUs.
    """
    if view.nodes is None:
        return []
    every = view.gpu_nodes()
    nodes = most_first(every, most, lambda node: (-sum(count for _, count in node.capacity), node.name))
    by_node = view.devices.by_node
    return [
        _family(CAPACITY, nodes, lambda n: with_claimable(n.capacity, _claimable(by_node.get(n.name), "capacity"))),
        _family(
            ALLOCATABLE, nodes, lambda n: with_claimable(n.allocatable, _claimable(by_node.get(n.name), "allocatable"))
        ),
        *_requested_and_free(nodes, view),
        LargeFamily(SCHEDULABLE, lambda: (SCHEDULABLE.sample(int(schedulable(n)), node=n.name) for n in nodes)),
        LargeFamily(INFO, lambda: (_info(node, keys) for node in nodes), left_out=len(every) - len(nodes)),
    ]


def _claimable(counts: tuple[DeviceCount, ...] | None, what: Literal["capacity", "allocatable", "free"]) -> Amounts:
    return tuple((each.name, getattr(each, what)) for each in counts or ())


def _requested_and_free(nodes: list[Node], view: ClusterView) -> list[LargeFamily]:
    if view.pods is None:
        return []
    requests = view.requested()
    unlisted = _unlisted(nodes, requests)
    by_node = view.devices.by_node
    return [
        _family(REQUESTED, nodes, lambda node: _requested_on(node, requests, unlisted, view)),
        _family(FREE, nodes, lambda n: with_claimable(free_on(n, requests), _claimable(by_node.get(n.name), "free"))),
    ]


def _unlisted(nodes: list[Node], requests: Requested) -> Mapping[str, list[str]]:
    """Resources by node that pods request and the node does not list: DRA, or a device plugin that has gone."""
    listed = {(node.name, name) for node in nodes for name, _ in (*node.capacity, *node.allocatable)}
    unlisted: dict[str, list[str]] = {}
    for name, resource in requests.keys() - listed:
        unlisted.setdefault(name, []).append(resource)
    return unlisted


def _requested_on(node: Node, requests: Requested, unlisted: Mapping[str, list[str]], view: ClusterView) -> Amounts:
    """What pods on the node request; of the devices of DRA those that claims were given, also shared ones."""
    claimed = {each.name: each.requested for each in view.devices.by_node.get(node.name, ())}
    through_dra = {name for each in claimed for name in view.devices.names_of(each)}
    listed = {name for name, _ in (*node.capacity, *node.allocatable)}
    names = listed | (set(unlisted.get(node.name, ())) - through_dra)
    amounts = tuple((name, requests.get((node.name, name), 0)) for name in sorted(names))
    return amounts + tuple((name, count) for name, count in claimed.items() if name not in listed)


def _family(metric: Metric, nodes: list[Node], amounts: Callable[[Node], Amounts]) -> LargeFamily:
    """One sample per node and resource; two resource names with the same label value add up."""

    def samples() -> Iterator[Sample]:
        for node in nodes:
            sums: dict[str, int] = {}
            for name, count in amounts(node):
                resource = resource_label(name)
                sums[resource] = sums.get(resource, 0) + count
            for resource, count in sums.items():
                yield metric.ordered(count, node.name, resource, node.description.model)

    return LargeFamily(metric, samples)


def _info(node: Node, keys: Keys) -> Sample:
    description = node.description
    return INFO.sample(
        1,
        node=node.name,
        model=description.model,
        gpu_count=description.gpu_count,
        sharing=description.sharing,
        mig_strategy=description.mig_strategy,
        pool=description.pool,
        **dict(zip(NODE_NAMES, node_values(node, keys), strict=True)),
    )
