"""The view of the cluster that one collection works on: the objects of the stores at one moment."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from exporter.cluster.kubernetes.converting.autoscaler_status import AutoscalerStatus
from exporter.cluster.kubernetes.converting.controllers import Controller
from exporter.cluster.kubernetes.converting.devices import DeviceClass, ResourceClaim, ResourceSlice
from exporter.cluster.kubernetes.converting.events import Event
from exporter.cluster.kubernetes.converting.node_pools import NodePool
from exporter.cluster.kubernetes.objects.records import Namespace, Node, OtherPod, Overrides, Pod, ResourceQuota
from exporter.cluster.kubernetes.watching.store import StoreView
from exporter.cluster.prices.price import PricesInUse
from exporter.cluster.scheduling.keeping.history import ClusterHistory, PodFailure, PodRejection, Workload
from exporter.cluster.scheduling.keeping.node_chunks import NodeChunk, chunks_of_nodes
from exporter.cluster.scheduling.keeping.node_sums import NodeSums
from exporter.cluster.scheduling.keeping.pod_chunks import PodChunk, by_name, chunks_of
from exporter.cluster.scheduling.keeping.waits import WaitGroup, Waits
from exporter.cluster.scheduling.nodes.device_claims import DeviceObjects, offered, with_claims
from exporter.cluster.scheduling.nodes.free_capacity import Requested, requested
from exporter.cluster.scheduling.reasons.admission import with_admission
from exporter.cluster.scheduling.reasons.pending_pods import ClusterObjects, PendingPod, pending_pods
from exporter.gpu_names import GpuResources

_CONTROLLERS = ("replicasets", "statefulsets", "daemonsets", "jobs", "workloads")
R = TypeVar("R")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Objects of a kind are None, or not there, before their first list and while they are out of date."""

    now: float
    """Seconds since the epoch."""
    gpus: GpuResources
    pods: tuple[Pod, ...] | None = None
    """GPU pods that are not finished."""
    pod_chunks: tuple[PodChunk, ...] | None = None
    """The same pods in chunks, of which most are those of the view before; None where no history made them."""
    requests: Requested | None = None
    """The devices that the pods on each node request; None where they were not summed yet."""
    node_chunks: tuple[NodeChunk, ...] | None = None
    """The nodes with GPUs in chunks, of which most are those of the view before; None where no history made them."""
    other_pods: tuple[OtherPod, ...] = ()
    """Pods without GPUs that are on a node."""
    rejected: tuple[Pod, ...] = ()
    """GPU pods that failed because a kubelet did not admit them."""
    failed: tuple[Pod, ...] = ()
    """GPU pods that ran and failed."""
    unclear: tuple[Pod, ...] = ()
    """Pods whose claims are not known, or are not for GPUs."""
    nodes: tuple[Node, ...] | None = None
    namespaces: Mapping[str, Overrides] | None = None
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By namespace, the values of the labels that say who pays for it; only those that have some."""
    devices: DeviceObjects = field(default_factory=DeviceObjects)
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    """By the uid of the object that they are about."""
    events_known: bool = True
    """Whether events may be read."""
    autoscaler: AutoscalerStatus | None = None
    """What the cluster autoscaler says of its node groups."""
    controllers: tuple[Controller, ...] = ()
    """Controllers that lack GPU pods, and Workloads."""
    gpu_pools: bool = False
    """Whether a NodePool of Karpenter can make nodes with GPUs."""
    pending: tuple[PendingPod, ...] = ()
    """The GPU pods that are not running yet, and why."""
    pending_since: Mapping[Workload, float] = field(default_factory=dict)
    """Since when each workload with schedulable pending pods is pending, in seconds since the epoch."""
    rejections: Mapping[PodRejection, int] = field(default_factory=dict)
    """How many GPU pods kubelets have rejected since the watcher started."""
    failures: Mapping[PodFailure, int] = field(default_factory=dict)
    """How many GPU pods have run and failed since the watcher started."""
    failed_workloads: Mapping[str, int] = field(default_factory=dict)
    """How many workloads have failed on each node within seven days."""
    waits: Mapping[WaitGroup, Waits] = field(default_factory=dict)
    """How long pods waited that were bound since the watcher started."""
    quotas: tuple[ResourceQuota, ...] = ()
    """Quotas of GPUs."""
    stores: tuple[StoreView, ...] = ()
    prices: PricesInUse | None = None
    """What GPUs cost; None without a price list."""

    def chunks(self) -> tuple[PodChunk, ...]:
        """The GPU pods in chunks, by namespace and name; none while they are not known."""
        return chunks_of(by_name(self.pods or ()), self.namespaces) if self.pod_chunks is None else self.pod_chunks

    def requested(self) -> Requested:
        """The devices that the pods on each node request."""
        return requested(self.pods or ()) if self.requests is None else self.requests

    def chunks_of(self, nodes: Sequence[Node]) -> tuple[NodeChunk, ...]:
        """These nodes, sorted by name, in chunks: those of the history where all nodes with GPUs are meant."""
        if self.node_chunks is not None and len(nodes) == sum(len(chunk.nodes) for chunk in self.node_chunks):
            return self.node_chunks
        taken = None if self.pods is None else NodeSums().update(self.pods, self.other_pods)
        return tuple(chunks_of_nodes(nodes, self.devices, taken))

    def gpu_nodes(self) -> list[Node]:
        """The nodes that offer GPUs, or should, by name; none while the nodes are not known."""
        found = (node for node in self.nodes or () if node.has_gpus or node.name in self.devices.by_node)
        return sorted(found, key=lambda node: node.name)


def view_of(now: float, gpus: GpuResources, stores: tuple[StoreView, ...], history: ClusterHistory) -> ClusterView:
    """Make the view from the stores, in any order. `now` is in seconds since the epoch."""
    devices = _device_objects(stores)
    every = _records(stores, "pods", Pod)
    controllers = tuple(each for name in _CONTROLLERS for each in _records(stores, name, Controller) or ())
    gpu_pods = None if every is None else with_claims(every, devices)
    with_failed = None if gpu_pods is None else with_admission(gpu_pods, controllers)
    pods = None if with_failed is None else tuple(pod for pod in with_failed if pod.phase != "Failed")
    failed = tuple(pod for pod in with_failed or () if pod.phase == "Failed")
    namespaces = _records(stores, "namespaces", Namespace)
    events = _records(stores, "events", Event)
    view = ClusterView(
        now=now,
        gpus=gpus,
        pods=pods,
        other_pods=_records(stores, "pods", OtherPod) or (),
        rejected=tuple(pod for pod in failed if pod.rejected),
        failed=tuple(pod for pod in failed if pod.failure),
        unclear=_unclear(every or (), gpu_pods or ()),
        nodes=_records(stores, "nodes", Node),
        namespaces=None if namespaces is None else {each.name: each.overrides for each in namespaces},
        owners={each.name: each.owners for each in namespaces or () if any(each.owners)},
        devices=devices,
        events=_by_uid(events or ()),
        events_known=events is not None,
        autoscaler=next(iter(_records(stores, "configmaps", AutoscalerStatus) or ()), None),
        controllers=controllers,
        quotas=_records(stores, "resourcequotas", ResourceQuota) or (),
        gpu_pools=bool(_records(stores, "nodepools", NodePool)),
        stores=stores,
    )
    return with_pending(view, history)


def objects_of(view: ClusterView) -> ClusterObjects:
    """What the reasons of pending pods are found from, without what only a history knows."""
    return ClusterObjects(
        view.now,
        view.gpus,
        view.pods or (),
        view.nodes,
        view.devices,
        view.events,
        view.events_known,
        requests=view.requested(),
        gpu_pools=view.gpu_pools,
        autoscaler=view.autoscaler,
        node_devices={
            node.name: use.devices
            for chunk in view.node_chunks or ()
            for node, use in zip(chunk.nodes, chunk.uses or (), strict=True)
        },
    )


def with_pending(view: ClusterView, history: ClusterHistory) -> ClusterView:
    """Return the view with its pending pods and with what the history, which is brought up to date, has of them."""
    lost = () if view.nodes is None else history.lost_nodes.update(view.gpu_nodes(), view.now)
    pods = view.pods
    if pods is None:
        return view
    view = _with_sums(view, pods, history)
    pending = tuple(pending_pods(replace(objects_of(view), lost_nodes=lost)))
    _end_what_is_gone(view, history)
    return replace(
        view,
        pod_chunks=history.chunks.update(pods, view.namespaces),
        pending=pending,
        pending_since=history.clocks.update(pods, pending, view.now),
        rejections=history.rejections.update(view.rejected, view.unclear),
        failures=history.failures.update(view.failed, view.unclear),
        failed_workloads=history.failed_workloads.update(view.failed, view.now),
        waits=history.waits.update(pods, view.unclear),
    )


def _with_sums(view: ClusterView, pods: tuple[Pod, ...], history: ClusterHistory) -> ClusterView:
    """Return the view with what the pods on each node take."""
    taken = history.node_sums.update(pods, view.other_pods)
    chunks = None if view.nodes is None else history.node_chunks.update(view.gpu_nodes(), view.devices, taken)
    return replace(view, requests=taken.requests, node_chunks=chunks)


def _end_what_is_gone(view: ClusterView, history: ClusterHistory) -> None:
    """Forget what was counted of namespaces and nodes that are gone, but not while these are not known.

    A pod that is still there speaks for its node, whose loss may be why it failed.
    """
    pods = (*(view.pods or ()), *view.rejected, *view.failed)
    if view.namespaces is not None:
        history.end_with_namespaces({*view.namespaces, *(pod.namespace for pod in pods)}, view.now)
    if view.nodes is not None:
        history.end_with_nodes({*(node.name for node in view.nodes), *(pod.node for pod in pods)}, view.now)


def _records(stores: tuple[StoreView, ...], name: str, type_: type[R]) -> tuple[R, ...] | None:
    found = next((store.records for store in stores if store.object == name), None)
    return None if found is None else tuple(each for each in found if isinstance(each, type_))


def _unclear(every: tuple[Pod, ...], gpu_pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    claiming = [pod for pod in every if pod.claims]
    clear = {pod.uid for pod in gpu_pods} if claiming else set()
    return tuple(pod for pod in claiming if pod.uid not in clear)


def _device_objects(stores: tuple[StoreView, ...]) -> DeviceObjects:
    def by(key: Callable[[R], K], name: str, type_: type[R]) -> dict[K, R] | None:
        found = _records(stores, name, type_)
        return None if found is None else {key(each): each for each in found}

    objects = DeviceObjects(
        claims=by(lambda each: (each.namespace, each.name), "resourceclaims", ResourceClaim),
        templates=by(lambda each: (each.namespace, each.name), "resourceclaimtemplates", ResourceClaim),
        classes=by(lambda each: each.name, "deviceclasses", DeviceClass),
        slices=_records(stores, "resourceslices", ResourceSlice),
    )
    return replace(objects, by_node=offered(objects))


def _by_uid(events: tuple[Event, ...]) -> dict[str, tuple[Event, ...]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for each in events:
        found[each.uid].append(each)
    return {uid: tuple(each) for uid, each in found.items()}
