"""Finds why a GPU pod is not running yet: one reason of a closed set for each pod. No I/O, no state.

The order is: what the kubelet says of a bound pod; gates and gangs; pods that are being removed for it; claims and
volumes that are missing; what keeps the pod off the nodes that have its GPUs; and what else the scheduler's message
names. What can never be met comes before what is short now.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from exporter.cluster.kubernetes.events import (
    CLAIM_EVENTS,
    NOMINATED,
    NOT_TRIGGERED_SCALE_UP,
    SANDBOX_EVENTS,
    TRIGGERED_SCALE_UP,
    VOLUME_EVENTS,
    Event,
)
from exporter.cluster.kubernetes.records import Pod
from exporter.cluster.scheduling.free_capacity import NodeGroup
from exporter.cluster.scheduling.message import Message, parse
from exporter.cluster.scheduling.node_fit import Fit, fit
from exporter.cluster.scheduling.pending_reason import PendingReason
from exporter.cluster.scheduling.wordings import Cause
from exporter.gpu_names import GPU_FRACTION, WHOLE_GPU, GpuResources

SCALE_UP_SECONDS = 900.0
"""How long an autoscaler's word counts: a node that has not come after that time is not being made any more."""

_LARGEST_NODE = 16
"""GPUs of the largest instances that providers offer."""
_BY_CAUSE = {
    Cause.QUOTA: PendingReason.QUOTA,
    Cause.VOLUME: PendingReason.VOLUME,
    Cause.CLAIM: PendingReason.CLAIM,
    Cause.GPU: PendingReason.INSUFFICIENT_GPU,
    Cause.GPU_UNAVAILABLE: PendingReason.GPU_UNAVAILABLE,
    Cause.POD_AFFINITY: PendingReason.NODE_SELECTOR_OR_AFFINITY,
    Cause.TOPOLOGY: PendingReason.TOPOLOGY,
    Cause.CPU_OR_MEMORY: PendingReason.INSUFFICIENT_CPU_OR_MEMORY,
    Cause.OTHER_RESOURCE: PendingReason.INSUFFICIENT_OTHER,
    Cause.NODE_UNAVAILABLE: PendingReason.NODE_UNAVAILABLE,
    Cause.TAINT: PendingReason.TAINT,
    Cause.SELECTOR: PendingReason.NODE_SELECTOR_OR_AFFINITY,
}
_BESIDE_GPUS = (
    Cause.VOLUME,
    Cause.CLAIM,
    Cause.POD_AFFINITY,
    Cause.TOPOLOGY,
    Cause.CPU_OR_MEMORY,
    Cause.OTHER_RESOURCE,
    Cause.NO_WORD,
    Cause.UNKNOWN,
)
"""What can keep a pod off a node with free GPUs, and only the message knows: our records have none of it."""
_BY_MESSAGE = (
    Cause.QUOTA,
    Cause.VOLUME,
    Cause.CLAIM,
    Cause.GPU,
    *_BESIDE_GPUS,
    Cause.GPU_UNAVAILABLE,
    Cause.NODE_UNAVAILABLE,
    Cause.TAINT,
    Cause.SELECTOR,
)
"""The order in which causes are chosen when the nodes are not known, or give no cause that the message names.

Taints and selectors come last: the message also counts all nodes that are not meant for the pod under them.
"""
_BY_FIT = {
    Fit.UNKNOWN_RESOURCE: PendingReason.UNKNOWN_RESOURCE,
    Fit.NOT_SELECTED: PendingReason.NODE_SELECTOR_OR_AFFINITY,
    Fit.TOO_LARGE: PendingReason.UNSATISFIABLE_SIZE,
    Fit.TAINTED: PendingReason.TAINT,
    Fit.NODES_UNAVAILABLE: PendingReason.NODE_UNAVAILABLE,
    Fit.GPUS_UNAVAILABLE: PendingReason.GPU_UNAVAILABLE,
    Fit.FULL: PendingReason.INSUFFICIENT_GPU,
    Fit.FRAGMENTED: PendingReason.FRAGMENTATION,
}
_SHORT = frozenset({Cause.GPU, Cause.SOME_RESOURCE, Cause.GPU_UNAVAILABLE})
_WITNESSES = {
    Fit.TAINTED: frozenset({Cause.TAINT}),
    Fit.NODES_UNAVAILABLE: frozenset({Cause.NODE_UNAVAILABLE, Cause.TAINT}),
    Fit.GPUS_UNAVAILABLE: _SHORT,
    Fit.FULL: _SHORT,
    Fit.FRAGMENTED: _SHORT,
}
"""Causes of which the message names one where our comparison is right; without one the message alone decides.

A message is from the scheduler's last attempt, and the nodes can have changed since.
"""
_FOR_A_CLAIM = frozenset({Fit.NOT_SELECTED, Fit.TAINTED, Fit.NODES_UNAVAILABLE, Fit.GPUS_UNAVAILABLE})
"""What counts for a pod with a claim; the claim itself has conditions on devices that only the scheduler knows."""
_A_NODE_HELPS = frozenset(
    {
        PendingReason.INSUFFICIENT_GPU,
        PendingReason.INSUFFICIENT_CPU_OR_MEMORY,
        PendingReason.INSUFFICIENT_OTHER,
        PendingReason.NODE_SELECTOR_OR_AFFINITY,
        PendingReason.TAINT,
        PendingReason.TOPOLOGY,
        PendingReason.FRAGMENTATION,
        PendingReason.UNSATISFIABLE_SIZE,
        PendingReason.UNKNOWN_RESOURCE,
        PendingReason.OTHER,
    }
)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the reason depends on besides the pod."""

    gpus: GpuResources
    groups: tuple[NodeGroup, ...] | None = None
    """The nodes with GPUs, as groups of equal ones; None while they are unknown or too many to compare."""
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
    remade: tuple[NodeGroup, ...] = ()
    """Nodes as an autoscaler could make them again: the kinds that were there in the last week and are gone."""
    gpu_pools: bool = False
    """Whether an autoscaler can make nodes with GPUs, of whatever size."""
    now: float = 0.0


def pending_reason(pod: Pod, cluster: ClusterState) -> PendingReason:
    """Return the current reason of a pod whose phase is Pending."""
    if pod.node:
        return _bound(pod, cluster)
    if pod.gated:
        return PendingReason.QUEUED if pod.plan.queued else PendingReason.GATED
    if (pod.namespace, pod.plan.group.name) in cluster.gangs:
        return PendingReason.GANG
    message = message_of(pod, cluster.gpus)
    if _preempting(pod, message, cluster):
        return PendingReason.PREEMPTING
    if pod.plan.claim_missing:
        return PendingReason.CLAIM
    if message is None:
        return _without_verdict(pod)
    return _after_verdict(pod, message, cluster)


def _after_verdict(pod: Pod, message: Message, cluster: ClusterState) -> PendingReason:
    assert pod.scheduled is not None
    if pod.scheduled.status != "False":
        return PendingReason.OTHER
    if pod.scheduled.reason == "SchedulerError":
        return _scheduler_error(pod.scheduled.message)
    found = _unschedulable(pod, message, cluster)
    return PendingReason.SCALING_UP if found in _A_NODE_HELPS and _scaling_up(pod, cluster) else found


def message_of(pod: Pod, gpus: GpuResources) -> Message | None:
    """What the scheduler's message states; None while there is none, as when a removed gate still has its condition."""
    condition = pod.scheduled
    if condition is None or condition.reason == "SchedulingGated":
        return None
    return parse(condition.message, gpus)


def waits_for_gang(pod: Pod, gpus: GpuResources) -> bool:
    """Whether the pod waits for the other pods of its group: it is then the same for all of them."""
    message = message_of(pod, gpus)
    if message is None:
        return pod.plan.group.built_in and not pod.plan.nominated
    return Cause.GANG in message.causes


def _bound(pod: Pod, cluster: ClusterState) -> PendingReason:
    if pod.plan.not_started:
        return PendingReason.of(pod.plan.not_started)
    if cluster.node_names is not None and pod.node not in cluster.node_names:
        return PendingReason.NODE_UNAVAILABLE
    found = {event.reason for event in cluster.events.get(pod.uid, ())}
    if found & SANDBOX_EVENTS:
        return PendingReason.START_FAILED
    if found & VOLUME_EVENTS:
        return PendingReason.VOLUME
    return PendingReason.CLAIM if found & CLAIM_EVENTS else PendingReason.STARTING


def _preempting(pod: Pod, message: Message | None, cluster: ClusterState) -> bool:
    """Whether other pods are being removed for it. A node is also nominated for a pod that waits for its volume."""
    if message is None:
        return False
    if Cause.PREEMPTING in message.causes:
        return True
    if not pod.plan.nominated or pod.scheduled is None or pod.scheduled.reason != "Unschedulable":
        return False
    return pod.plan.nominated in cluster.leaving or not message.preemption_failed


def _without_verdict(pod: Pod) -> PendingReason:
    """The scheduler writes nothing while it waits for a volume or a claim on the node that it has chosen."""
    if pod.plan.nominated and pod.plan.has_volume_claims:
        return PendingReason.VOLUME
    return PendingReason.CLAIM if pod.plan.nominated and pod.claims else PendingReason.NOT_TRIED


def _scheduler_error(text: str) -> PendingReason:
    lowered = text.lower()
    if any(word in lowered for word in ("volume", "persistentvolumeclaim", "storageclass")):
        return PendingReason.VOLUME
    if any(word in lowered for word in ("claim", "dynamicresources", "allocate devices")):
        return PendingReason.CLAIM
    return PendingReason.SCHEDULER_ERROR


def _unschedulable(pod: Pod, message: Message, cluster: ClusterState) -> PendingReason:
    causes = _as_gpu_words(pod, message.causes)
    if Cause.QUOTA in causes:
        return PendingReason.QUOTA
    if Cause.GANG in causes:
        return PendingReason.GANG
    alone = next(iter(message.causes)) if len(message.causes) == 1 else None
    if alone in (Cause.VOLUME, Cause.CLAIM) or (alone is Cause.NODE_UNAVAILABLE and not cluster.groups):
        return _BY_CAUSE[alone]
    if cluster.groups is not None and _comparable(pod):
        found = fit(pod, cluster.groups)
        if found is Fit.ROOM:
            return _first(_BESIDE_GPUS, causes) or _first(_BY_MESSAGE, causes) or _short(causes)
        if _holds(found, pod, message.causes, cluster):
            never = found in (Fit.UNKNOWN_RESOURCE, Fit.TOO_LARGE)
            return PendingReason.INSUFFICIENT_GPU if never and _can_be_made(pod, cluster) else _BY_FIT[found]
    return _first(_BY_MESSAGE, causes) or _short(causes)


def _as_gpu_words(pod: Pod, causes: frozenset[Cause]) -> frozenset[Cause]:
    """A pod that names no claim and asks for a resource served by DRA is short of GPUs, not of a claim."""
    if Cause.DEVICE_CLAIM not in causes:
        return causes
    own = Cause.CLAIM if any(not claim.device_class for claim in pod.claims) else Cause.GPU
    return (causes - {Cause.DEVICE_CLAIM}) | {own}


def _comparable(pod: Pod) -> bool:
    """Whether nodes tell how much they have of what the pod asks for: parts of GPUs are known to their scheduler."""
    return all(name != GPU_FRACTION for name, _ in pod.requests)


def _holds(found: Fit, pod: Pod, named: frozenset[Cause], cluster: ClusterState) -> bool:
    """Whether our comparison counts: the message names such a cause, and the pod's devices are known."""
    through_dra = Cause.DEVICE_CLAIM in named or bool(pod.claims)
    if through_dra and not cluster.claimable_known:
        return False
    if any(not claim.device_class for claim in pod.claims) and found not in _FOR_A_CLAIM:
        return False
    witnesses = _WITNESSES.get(found)
    return witnesses is None or bool(witnesses & named) or (Cause.DEVICE_CLAIM in named and Cause.GPU in witnesses)


def _first(order: Iterable[Cause], causes: frozenset[Cause]) -> PendingReason | None:
    found = next((cause for cause in order if cause in causes), None)
    return None if found is None else _BY_CAUSE.get(found, PendingReason.OTHER)


def _short(causes: frozenset[Cause]) -> PendingReason:
    return PendingReason.INSUFFICIENT_GPU if Cause.SOME_RESOURCE in causes else PendingReason.OTHER


def _can_be_made(pod: Pod, cluster: ClusterState) -> bool:
    """Whether an autoscaler could make a node for the pod, and has not refused to.

    It makes such nodes as were there in the last week; of Karpenter's it is only known that they have whole GPUs.
    """
    if _last_word(pod, cluster) == NOT_TRIGGERED_SCALE_UP:
        return False
    usual = all(name == WHOLE_GPU and count <= _LARGEST_NODE for name, count in pod.requests)
    return (cluster.gpu_pools and usual) or fit(pod, cluster.remade) is Fit.ROOM


def _scaling_up(pod: Pod, cluster: ClusterState) -> bool:
    return _last_word(pod, cluster) in (TRIGGERED_SCALE_UP, NOMINATED)


def _last_word(pod: Pod, cluster: ClusterState) -> str:
    """The last thing that an autoscaler has said about the pod lately: the reason of an event, or nothing."""
    heard = [
        (event.at, event.reason)
        for event in cluster.events.get(pod.uid, ())
        if event.reason in (TRIGGERED_SCALE_UP, NOT_TRIGGERED_SCALE_UP, NOMINATED)
        and cluster.now - event.at <= SCALE_UP_SECONDS
    ]
    return max(heard)[1] if heard else ""
