"""Finds why a GPU pod is not running yet: one reason of a closed set for each pod. No I/O, no state.

The scheduler's message counts nodes per cause, and nodes without GPUs also count as "Insufficient nvidia.com/gpu".
Where it has two or more causes and the nodes are known, the pod is therefore compared with the nodes that have its
GPUs, and the cause that keeps it off those nodes is chosen.
"""

from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Amounts, Pod
from exporter.cluster.scheduling.free_capacity import NodeGroup
from exporter.cluster.scheduling.message import Cause, causes
from exporter.cluster.scheduling.node_selection import selected, tolerated
from exporter.gpu_names import GpuResources
from exporter.reason import Reason


class PendingReason(Reason):
    """Why a GPU pod is not running yet: label `reason` of the pending series; see `docs/runbook.md`."""

    GATED = (
        "gated",
        "The pod has scheduling gates.",
        "Ask whoever set the scheduling gates, usually a queue such as Kueue.",
    )
    NOT_TRIED = (
        "not_tried",
        "The scheduler has not tried the pod yet.",
        "None for some seconds; then check that the pod's schedulerName names a scheduler that runs.",
    )
    STARTING = (
        "starting",
        "The pod is bound to a node and its containers do not run yet.",
        "Look at the pod's events.",
    )
    INSUFFICIENT_GPU = (
        "insufficient_gpu",
        "The nodes that the pod could use have too few free GPUs.",
        "Wait, free GPUs (see the low utilization alerts), or add nodes.",
    )
    INSUFFICIENT_CPU_OR_MEMORY = (
        "insufficient_cpu_or_memory",
        "GPUs are free, but CPU, memory, storage or pod places on these nodes are not.",
        "Request less, or move other pods away from the GPU nodes.",
    )
    NODE_SELECTOR_OR_AFFINITY = (
        "node_selector_or_affinity",
        "Node selector or affinity allow no node that has the GPUs.",
        "Correct the selector, or label the nodes.",
    )
    TAINT = (
        "taint",
        "The nodes with the GPUs have a taint that the pod does not tolerate.",
        "Add the toleration, or remove the taint.",
    )
    OTHER = ("other", "The scheduler names another cause.", "Read the pod's PodScheduled condition.")


_REASONS = {
    Cause.GPU: PendingReason.INSUFFICIENT_GPU,
    Cause.CPU_OR_MEMORY: PendingReason.INSUFFICIENT_CPU_OR_MEMORY,
    Cause.SELECTOR: PendingReason.NODE_SELECTOR_OR_AFFINITY,
    Cause.POD_AFFINITY: PendingReason.NODE_SELECTOR_OR_AFFINITY,
    Cause.TAINT: PendingReason.TAINT,
    Cause.NODE_UNAVAILABLE: PendingReason.OTHER,
    Cause.OTHER: PendingReason.OTHER,
}
_NOT_COMPUTABLE = (Cause.CPU_OR_MEMORY, Cause.POD_AFFINITY, Cause.OTHER)
"""Causes that only the scheduler's message can have: our records have no CPU, memory or affinity between pods."""
_FALLBACK_ORDER = (Cause.GPU, *_NOT_COMPUTABLE, Cause.NODE_UNAVAILABLE, Cause.TAINT, Cause.SELECTOR)
"""The order in which causes are chosen when node data are missing or give no cause that the message names.

Taints and selectors come last: the message also counts all nodes that are not meant for the pod under them.
"""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the reason depends on besides the pod."""

    gpus: GpuResources
    groups: tuple[NodeGroup, ...] | None = None
    """The nodes with GPUs, as groups of equal ones; None while they are unknown or too many to compare."""


def pending_reason(pod: Pod, cluster: ClusterState) -> PendingReason:
    """Return the current reason of a pod whose phase is Pending."""
    if pod.node:
        return PendingReason.STARTING
    condition = pod.scheduled
    if pod.gated:
        return PendingReason.GATED
    if condition is None or condition.reason == "SchedulingGated":
        return PendingReason.NOT_TRIED
    if condition.status != "False" or condition.reason != "Unschedulable":
        return PendingReason.OTHER
    return _unschedulable(pod, causes(condition.message, cluster.gpus), cluster)


def _unschedulable(pod: Pod, named: frozenset[Cause], cluster: ClusterState) -> PendingReason:
    if cluster.groups is not None and len(named) > 1:
        cause = blocking_cause(pod, cluster.groups, named)
        if cause in named:
            return _REASONS[cause]
    return next((_REASONS[cause] for cause in _FALLBACK_ORDER if cause in named), PendingReason.OTHER)


def blocking_cause(pod: Pod, groups: tuple[NodeGroup, ...], named: frozenset[Cause]) -> Cause:
    """Return what keeps the pod off the nodes that offer its resources, computed from the nodes themselves.

    Filters are applied in this order: selector and affinity, taints, ready and not cordoned, enough free GPUs. The one
    that leaves no node is the cause; it counts only if the message names it, too. Where nodes with free GPUs are left,
    the cause is the first of CPU or memory, pod affinity and other that the message names.
    """
    offering = [group for group in groups if _offers(group, pod.requests)]
    if not offering:
        return Cause.GPU
    matching = [group for group in offering if selected(pod.constraints, group.name, group.labels)]
    if not matching:
        return Cause.SELECTOR
    allowed = [group for group in matching if tolerated(pod.constraints, group.taints)]
    if not allowed:
        return Cause.TAINT
    schedulable = [group for group in allowed if group.schedulable]
    if not schedulable:
        return Cause.NODE_UNAVAILABLE
    if not any(_fits(pod.requests, free) for group in schedulable for free in group.free):
        return Cause.GPU
    return next((cause for cause in _NOT_COMPUTABLE if cause in named), Cause.OTHER)


def _offers(group: NodeGroup, requests: Amounts) -> bool:
    return all(name in group.resources for name, _ in requests)


def _fits(requests: Amounts, free: Amounts) -> bool:
    counts = dict(free)
    return all(counts.get(name, 0) >= count for name, count in requests)
