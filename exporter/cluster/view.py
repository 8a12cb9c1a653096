"""The view of the cluster that one collection works on: the pods, nodes and namespaces of the stores at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.cluster.kubernetes.records import Namespace, Node, Overrides, Pod
from exporter.cluster.kubernetes.store import StoreView
from exporter.cluster.label_cache import LabelCache
from exporter.gpu_names import GpuResources


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`pods`, `nodes` and `namespaces` are each None before their first list and while they are out of date."""

    now: float
    """Seconds since the epoch."""
    gpus: GpuResources
    pods: tuple[Pod, ...] | None = None
    nodes: tuple[Node, ...] | None = None
    namespaces: Mapping[str, Overrides] | None = None
    stores: tuple[StoreView, ...] = ()
    labels: LabelCache = field(default_factory=LabelCache)
    """Makes the samples; shared by all collections of a pipeline."""


def view_of(now: float, gpus: GpuResources, stores: tuple[StoreView, ...], labels: LabelCache) -> ClusterView:
    """Make the view from the three stores, in any order. `now` is in seconds since the epoch."""
    records = {store.object: store.records for store in stores}
    pods, nodes, namespaces = (records.get(name) for name in ("pods", "nodes", "namespaces"))
    return ClusterView(
        now=now,
        gpus=gpus,
        pods=None if pods is None else tuple(each for each in pods if isinstance(each, Pod)),
        nodes=None if nodes is None else tuple(each for each in nodes if isinstance(each, Node)),
        namespaces=None
        if namespaces is None
        else {each.name: each.overrides for each in namespaces if isinstance(each, Namespace)},
        stores=stores,
        labels=labels,
    )
