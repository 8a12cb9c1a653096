"""Finds why the scheduler has no node for a pod: from the nodes, and from what its message names. No I/O, no state."""

from collections.abc import Iterable

from exporter.cluster.kubernetes.converting.events import NOMINATED, NOT_TRIGGERED_SCALE_UP, TRIGGERED_SCALE_UP
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.scheduling.nodes.node_fit import Fit, fit
from exporter.cluster.scheduling.nodes.node_selection import by_name
from exporter.cluster.scheduling.reasons.cluster_state import ClusterState, last_word, may_wait_for_nodes
from exporter.cluster.scheduling.reasons.message import Message
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.scheduling.reasons.wordings import Cause
from exporter.gpu_names import GPU_FRACTION, WHOLE_GPU

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


def unschedulable(pod: Pod, message: Message, cluster: ClusterState) -> PendingReason:
    """Return the reason of a pod that the scheduler has tried in vain."""
    found = _reason(pod, message, cluster)
    return PendingReason.SCALING_UP if found in _A_NODE_HELPS and _node_comes(pod, cluster) else found


def _node_comes(pod: Pod, cluster: ClusterState) -> bool:
    """Whether an autoscaler is making a node for the pod, by its events or by its status."""
    word = last_word(pod, cluster)
    if word:
        return word in (TRIGGERED_SCALE_UP, NOMINATED)
    return may_wait_for_nodes(pod, cluster) and fit(pod, cluster.coming) is Fit.ROOM


def _reason(pod: Pod, message: Message, cluster: ClusterState) -> PendingReason:
    causes = _as_gpu_words(pod, message.causes)
    if Cause.QUOTA in causes:
        return PendingReason.QUOTA
    if Cause.GANG in causes:
        return PendingReason.GANG
    alone = next(iter(message.causes)) if len(message.causes) == 1 else None
    groups = cluster.single_nodes if by_name(pod.constraints) else cluster.groups
    if alone in (Cause.VOLUME, Cause.CLAIM) or (alone is Cause.NODE_UNAVAILABLE and not groups):
        return _BY_CAUSE[alone]
    if groups is not None and _comparable(pod):
        found = fit(pod, groups)
        if found is Fit.ROOM:
            # Not `causes`: nodes without devices cannot allocate the claims either, whatever is short beside free ones.
            return _first(_BESIDE_GPUS, message.causes) or _first(_BY_MESSAGE, causes) or _short(causes)
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
    if last_word(pod, cluster) == NOT_TRIGGERED_SCALE_UP:
        return False
    usual = all(name == WHOLE_GPU and count <= _LARGEST_NODE for name, count in pod.requests)
    return (cluster.gpu_pools and usual) or fit(pod, cluster.remade) is Fit.ROOM
