"""What the reason of a pending pod depends on besides the pod. No I/O, no state."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.cluster.kubernetes.converting.events import (
    NOMINATED,
    NOT_TRIGGERED_SCALE_UP,
    TRIGGERED_SCALE_UP,
    Event,
    events_about,
)
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.scheduling.nodes.free_capacity import NodeGroup
from exporter.gpu_names import GpuResources

SCALE_UP_SECONDS = 900.0
"""How long an autoscaler's word counts: a node that has not come after that time is not being made any more."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the reason depends on besides the pod."""

    gpus: GpuResources
    groups: tuple[NodeGroup, ...] | None = None
    """The nodes with GPUs, as groups of equal ones; None while they are unknown or too many to compare."""
    single_nodes: tuple[NodeGroup, ...] | None = None
    """Likewise, for pods that select nodes one by one: hardly any two nodes are equal for them."""
    node_names: frozenset[str] | None = None
    """All nodes; None while they are unknown."""
    claimable_known: bool = False
    """Whether the devices that nodes offer through DRA are known."""
    gangs: frozenset[tuple[str, str]] = frozenset()
    """(namespace, group) of the gangs that are not complete or do not fit."""
    leaving: frozenset[str] = frozenset()
    """Nodes on which a GPU pod is being deleted."""
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
    """By the uid of the pod that they are about."""
    events_known: bool = True
    """Whether events may be read."""
    remade: tuple[NodeGroup, ...] = ()
    """Nodes as an autoscaler could make them again: the kinds that were there in the last week and are gone."""
    coming: tuple[NodeGroup, ...] = ()
    """Nodes as the cluster autoscaler is making them."""
    failed_groups: tuple[str, ...] = ()
    """The node groups that the cluster autoscaler has lately failed to make larger."""
    gpu_pools: bool = False
    """Whether an autoscaler can make nodes with GPUs, of whatever size."""
    now: float = 0.0


def last_word(pod: Pod, cluster: ClusterState) -> str:
    """The last thing that an autoscaler has said about the pod lately: the reason of an event, or nothing.

    A scale-up of which the autoscaler's status says that it has failed does not count.
    """
    heard = [
        (event.at, event.reason)
        for event in events_about(cluster.events, pod.namespace, pod.uid)
        if event.reason in (TRIGGERED_SCALE_UP, NOT_TRIGGERED_SCALE_UP, NOMINATED)
        and cluster.now - event.at <= SCALE_UP_SECONDS
        and not _failed(event, cluster)
    ]
    return max(heard)[1] if heard else ""


def _failed(event: Event, cluster: ClusterState) -> bool:
    return event.reason == TRIGGERED_SCALE_UP and any(name in event.message for name in cluster.failed_groups)


def may_wait_for_nodes(pod: Pod, cluster: ClusterState) -> bool:
    """Whether nodes that are coming may be for the pod.

    The autoscaler says so of each pod once; where its events may be read, a pod without one is not waited for.
    """
    if not cluster.events_known:
        return True
    events = events_about(cluster.events, pod.namespace, pod.uid)
    return any(event.reason == TRIGGERED_SCALE_UP and not _failed(event, cluster) for event in events)
