"""Metrics of GPU nodes: their capacity, what is requested, what is free, and whether pods can be scheduled there."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from exporter.cluster.config import NODE_NAMES, Keys, SeriesLimits
from exporter.cluster.kubernetes.nodes.metadata_labels import node_values
from exporter.cluster.kubernetes.objects.records import Amounts, Node
from exporter.cluster.metrics.limits import most_first
from exporter.cluster.scheduling.keeping.node_chunks import NodeChunk
from exporter.cluster.scheduling.nodes.free_capacity import schedulable, with_claimable
from exporter.cluster.view import ClusterView
from exporter.gpu_names import resource_label
from exporter.metric import Chunk, ChunkedFamily, Kind, Metric, Sample, metric

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


def node_families(view: ClusterView, keys: Keys, most: int = SeriesLimits().nodes) -> list[ChunkedFamily]:
    """The families; none while the nodes are not known, no requested and free GPUs while the pods are not.

    `keys` are those of the labels that say where a node stands. Of more nodes than `most`, those with the most GPUs.
    """
    if view.nodes is None:
        return []
    every = view.gpu_nodes()
    nodes = most_first(every, most, lambda node: (-sum(count for _, count in node.capacity), node.name))
    chunks = view.chunks_of(nodes)
    return [
        _of_nodes(CAPACITY, chunks, _capacities),
        _of_nodes(ALLOCATABLE, chunks, _allocatable),
        *(_of_uses(chunks) if view.pods is not None else ()),
        _of_nodes(SCHEDULABLE, chunks, _schedulable),
        _of_nodes(INFO, chunks, lambda chunk: (_info(node, keys) for node in chunk.nodes), len(every) - len(nodes)),
    ]


def _of_nodes(
    metric: Metric, chunks: Sequence[NodeChunk], make: Callable[[NodeChunk], Iterator[Sample]], left_out: int = 0
) -> ChunkedFamily:
    return ChunkedFamily(metric, [Chunk(each.stamp, partial(make, each)) for each in chunks], left_out)


def _of_uses(chunks: Sequence[NodeChunk]) -> list[ChunkedFamily]:
    return [
        ChunkedFamily(REQUESTED, [Chunk(each.uses, partial(_requested, each)) for each in chunks]),
        ChunkedFamily(FREE, [Chunk(each.uses, partial(_free, each)) for each in chunks]),
    ]


def _capacities(chunk: NodeChunk) -> Iterator[Sample]:
    for node, counts in zip(chunk.nodes, chunk.claimable, strict=True):
        claimable = tuple((each.name, each.capacity) for each in counts)
        yield from _samples(CAPACITY, node, with_claimable(node.capacity, claimable))


def _allocatable(chunk: NodeChunk) -> Iterator[Sample]:
    for node, counts in zip(chunk.nodes, chunk.claimable, strict=True):
        claimable = tuple((each.name, each.allocatable) for each in counts)
        yield from _samples(ALLOCATABLE, node, with_claimable(node.allocatable, claimable))


def _requested(chunk: NodeChunk) -> Iterator[Sample]:
    for node, use in zip(chunk.nodes, chunk.uses or (), strict=True):
        yield from _samples(REQUESTED, node, use.requested)


def _free(chunk: NodeChunk) -> Iterator[Sample]:
    for node, use in zip(chunk.nodes, chunk.uses or (), strict=True):
        yield from _samples(FREE, node, use.free)


def _schedulable(chunk: NodeChunk) -> Iterator[Sample]:
    return (SCHEDULABLE.ordered(int(schedulable(node)), node.name) for node in chunk.nodes)


def _samples(metric: Metric, node: Node, amounts: Amounts) -> Iterator[Sample]:
    """One sample per resource; two resource names with the same label value add up."""
    sums: dict[str, int] = {}
    for name, count in amounts:
        resource = resource_label(name)
        sums[resource] = sums.get(resource, 0) + count
    for resource, count in sums.items():
        yield metric.ordered(count, node.name, resource, node.description.model)


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
