"""Metrics of what a cluster could still run: the largest free block, quotas, and nodes that do not offer their GPUs."""

from collections.abc import Iterator
from itertools import chain

from exporter.cluster.kubernetes.nodes.node_description import labeled_with_gpus
from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.view import ClusterView
from exporter.gpu_names import resource_label
from exporter.identity_labels import NAMESPACE, namespace_labels
from exporter.metric import Family, Kind, Metric, Sample, metric

LARGEST_FREE_BLOCK = metric(
    "gpugauge_largest_free_block_devices",
    Kind.GAUGE,
    "The most GPUs that are free on one node to which pods can be scheduled.",
    "resource",
    "model",
)
REGISTERED = metric(
    "gpugauge_node_device_plugin_registered",
    Kind.GAUGE,
    "Whether a node that has GPUs by its labels offers any; absent where DRA or virtual machines take them, or may.",
    "node",
)
STRANDED = metric(
    "gpugauge_node_gpu_stranded",
    Kind.GAUGE,
    "Free GPUs that no pod can use, because the node has no 2 CPUs, no 8 GiB or no place left for a pod with each.",
    "node",
    "resource",
    "blocker",
)
QUOTA_HARD = metric(
    "gpugauge_quota_hard",
    Kind.GAUGE,
    "GPUs that the pods of the namespace may request; the smallest of several quotas.",
    *NAMESPACE,
    "resource",
)
QUOTA_USED = metric(
    "gpugauge_quota_used",
    Kind.GAUGE,
    "GPUs that the pods of the namespace request, as the quota counts them.",
    *NAMESPACE,
    "resource",
)
METRICS = (LARGEST_FREE_BLOCK, STRANDED, REGISTERED, QUOTA_HARD, QUOTA_USED)

_WORKLOAD_CONFIG = "nvidia.com/gpu.workload.config"
"""The label by which the GPU Operator is told to leave a node's GPUs to virtual machines."""
_VIRTUAL_MACHINES = frozenset({"vm-passthrough", "vm-vgpu"})


def capacity_families(view: ClusterView) -> list[Family]:
    """The families; those of nodes are missing while the nodes are not known, and the largest block without pods."""
    return [
        Family(LARGEST_FREE_BLOCK, list(_largest_blocks(view))),
        Family(STRANDED, list(_stranded(view))),
        Family(REGISTERED, list(_registered(view))),
        *_quotas(view),
    ]


def _largest_blocks(view: ClusterView) -> Iterator[Sample]:
    if view.nodes is None or view.pods is None:
        return
    largest: dict[tuple[str, str], int] = {}
    for each in chain.from_iterable(chunk.capacities for chunk in view.chunks_of(view.gpu_nodes())):
        key = (resource_label(each.resource), each.model)
        largest[key] = max(largest.get(key, 0), each.largest)
    for (resource, model), free in sorted(largest.items()):
        yield LARGEST_FREE_BLOCK.ordered(free, resource, model)


def _stranded(view: ClusterView) -> Iterator[Sample]:
    if view.nodes is None or view.pods is None:
        return
    for chunk in view.chunks_of(view.gpu_nodes()):
        for node, use in zip(chunk.nodes, chunk.uses or (), strict=True):
            for each in use.stranded:
                yield STRANDED.ordered(each.devices, node.name, resource_label(each.resource), each.blocker)


def _registered(view: ClusterView) -> Iterator[Sample]:
    for node in view.gpu_nodes() if _offers_through_dra_known(view) else ():
        labels = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
        elsewhere = node.name in view.devices.by_node or labels.get(_WORKLOAD_CONFIG) in _VIRTUAL_MACHINES
        if labeled_with_gpus(labels) and not elsewhere:
            yield REGISTERED.ordered(int(_offers(node)), node.name)


def _offers_through_dra_known(view: ClusterView) -> bool:
    """Whether it is known which nodes offer GPUs through DRA: their slices were read, or the API has none."""
    slices = (store for store in view.stores if store.object == "resourceslices")
    return all(store.records is not None or store.off == WatchReason.NOT_SERVED for store in slices)


def _offers(node: Node) -> bool:
    return any(count for _, count in node.capacity)


def _quotas(view: ClusterView) -> list[Family]:
    hard: dict[tuple[str, str], int] = {}
    used: dict[tuple[str, str], int] = {}
    for quota in view.quotas:
        for name, count in quota.hard:
            key = (quota.namespace, resource_label(name))
            hard[key] = min(hard.get(key, count), count)
        for name, count in quota.used:
            key = (quota.namespace, resource_label(name))
            used[key] = max(used.get(key, count), count)
    return [_of_namespaces(QUOTA_HARD, hard), _of_namespaces(QUOTA_USED, used)]


def _of_namespaces(metric: Metric, amounts: dict[tuple[str, str], int]) -> Family:
    return Family(
        metric,
        [
            metric.sample(count, **namespace_labels(namespace), resource=resource)
            for (namespace, resource), count in sorted(amounts.items())
        ],
    )
