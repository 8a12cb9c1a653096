"""Finds the pending GPU pods of a cluster and their reasons. No I/O, no state."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from exporter.cluster.kubernetes.converting.autoscaler_status import AutoscalerStatus
from exporter.cluster.kubernetes.converting.events import Event, events_about
from exporter.cluster.kubernetes.objects.records import Node, Pod
from exporter.cluster.scheduling.nodes.device_claims import DeviceObjects
from exporter.cluster.scheduling.nodes.free_capacity import NodeDevices, NodeGroup, Requested, node_groups, requested
from exporter.cluster.scheduling.nodes.node_selection import by_name
from exporter.cluster.scheduling.reasons.autoscaled import can_come, coming, current, failed_groups
from exporter.cluster.scheduling.reasons.cluster_state import ClusterState
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.scheduling.reasons.verdict import message_of, pending_reason, waits_for_gang
from exporter.gpu_names import GpuResources

_MAX_COMPARISONS = 200_000
"""How many times a collection compares a pod with a group of nodes, at most; so many take about a second.

Where more would be needed, the scheduler's message alone decides.
"""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A GPU pod that is not running yet, and why."""

    pod: Pod
    reason: PendingReason

    @property
    def since(self) -> float:
        """Since when it is pending, in seconds since the epoch; a gated pod counts from its creation."""
        return self.pod.created if self.pod.schedulable_since is None else self.pod.schedulable_since


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects that reasons are found from; `nodes` is None while they are not known."""

    now: float
    """Seconds since the epoch."""
    gpus: GpuResources
    pods: Sequence[Pod]
    nodes: Sequence[Node] | None = None
    devices: DeviceObjects = field(default_factory=DeviceObjects)
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    """By the uid of the object that they are about."""
    events_known: bool = True
    """Whether events may be read."""
    lost_nodes: Sequence[Node] = ()
    """Nodes as an autoscaler could make them again."""
    gpu_pools: bool = False
    """Whether an autoscaler can make nodes with GPUs, of whatever size."""
    autoscaler: AutoscalerStatus | None = None
    requests: Requested | None = None
    """What the pods on each node request; None where that is to be summed."""
    node_devices: Mapping[str, NodeDevices] = field(default_factory=dict)
    """The devices of nodes, by name, for which they are already found."""


def pending_pods(objects: ClusterObjects) -> list[PendingPod]:
    """The GPU pods that are to run and do not run yet. One that is being deleted is not pending."""
    pods = _pending(objects.pods)
    cluster = _cluster_state(objects, pods)
    known: dict[object, PendingReason] = {}
    found = []
    for pod in pods:
        case = _case(pod, cluster)
        if case not in known:
            known[case] = pending_reason(pod, cluster)
        found.append(PendingPod(pod, known[case]))
    return found


def unknown_texts(pods: Iterable[Pod], gpus: GpuResources) -> list[tuple[Pod, str]]:
    """The texts in schedulers' messages about pending pods that no table has, with the pod of each."""
    messages = ((pod, message_of(pod, gpus)) for pod in _pending(pods) if not pod.node)
    return [(pod, text) for pod, message in messages if message is not None for text in message.unknown]


def _pending(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.phase == "Pending" and not pod.deleting]


def _case(pod: Pod, cluster: ClusterState) -> tuple[object, ...]:
    """What the reason depends on. Pods of one workload mostly have the same: each distinct case is decided once."""
    condition = pod.scheduled
    scheduled = None if condition is None else (condition.status, condition.reason, condition.message)
    events = events_about(cluster.events, pod.namespace, pod.uid)
    in_gang = (pod.namespace, pod.plan.group.name) in cluster.gangs
    claims = any(not claim.device_class for claim in pod.claims)
    return pod.node, pod.gated, pod.plan, scheduled, pod.constraints, pod.requests, in_gang, claims, events


def _cluster_state(objects: ClusterObjects, pending: list[Pod]) -> ClusterState:
    waiting = [pod for pod in pending if not pod.node and not pod.gated]
    status = current(objects.autoscaler, objects.now)
    known = chain(objects.lost_nodes, (node for node in objects.nodes or () if node.has_gpus))
    return ClusterState(
        objects.gpus,
        groups=_groups(objects, [pod for pod in waiting if not by_name(pod.constraints)]),
        single_nodes=_groups(objects, [pod for pod in waiting if by_name(pod.constraints)]),
        node_names=None if objects.nodes is None else frozenset(node.name for node in objects.nodes),
        claimable_known=objects.devices.slices is not None and objects.devices.classes is not None,
        gangs=frozenset(
            (pod.namespace, pod.plan.group.name)
            for pod in waiting
            if pod.plan.group.name and waits_for_gang(pod, objects.gpus)
        ),
        leaving=frozenset(pod.node for pod in objects.pods if pod.node and pod.deleting),
        events=objects.events,
        events_known=objects.events_known,
        remade=_as_made(can_come(objects.lost_nodes, status), waiting),
        coming=_as_made(coming(known, status), waiting),
        failed_groups=failed_groups(status),
        gpu_pools=objects.gpu_pools,
        now=objects.now,
    )


def _as_made(nodes: Sequence[Node], waiting: list[Pod]) -> tuple[NodeGroup, ...]:
    """These nodes as they are when they are made: ready, and with all their GPUs free."""
    made = [msgspec.structs.replace(node, allocatable=node.capacity, ready=True, cordoned=False) for node in nodes]
    return node_groups(made, {}, waiting, DeviceObjects()) if made else ()


def _groups(objects: ClusterObjects, waiting: list[Pod]) -> tuple[NodeGroup, ...] | None:
    """The nodes to compare these pods with, unless they are unknown or that would take too many comparisons.

    The pods either all select nodes one by one, or none of them does.
    """
    tried = [pod for pod in waiting if pod.scheduled and pod.scheduled.reason != "SchedulingGated"]
    if objects.nodes is None or not tried:
        return None
    cases = len({(pod.constraints, pod.requests, pod.scheduled and pod.scheduled.message) for pod in tried})
    if by_name(tried[0].constraints) and cases * len(objects.nodes) > _MAX_COMPARISONS:
        return None
    requests = requested(objects.pods) if objects.requests is None else objects.requests
    groups = node_groups(objects.nodes, requests, tried, objects.devices, objects.node_devices)
    return groups if cases * len(groups) <= _MAX_COMPARISONS else None
