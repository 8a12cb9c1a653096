"""Why a GPU pod is not running yet: one word of a closed set for each pod.

The scheduler's message says what was wrong on how many nodes, not on which: a CPU node is short of GPUs as well. So
the nodes are looked at here too, and of the causes that the message names the one counts that keeps the pod from
the nodes it was meant for.
"""

from dataclasses import dataclass

from exporter.cluster.kubernetes.records import Amounts, Pod
from exporter.cluster.scheduling.free_capacity import NodeGroup
from exporter.cluster.scheduling.message import Cause, causes
from exporter.cluster.scheduling.node_selection import selected, tolerated
from exporter.gpu_names import GpuResources

GATED = "gated"
NOT_TRIED = "not_tried"
STARTING = "starting"
OTHER = "other"

_REASONS = {
    Cause.GPU: "insufficient_gpu",
    Cause.ROOM: "insufficient_cpu_or_memory",
    Cause.SELECTOR: "node_selector_or_affinity",
    Cause.NEIGHBOURS: "node_selector_or_affinity",
    Cause.TAINT: "taint",
    Cause.UNAVAILABLE: OTHER,
    Cause.OTHER: OTHER,
}
_BESIDE_GPUS = (Cause.ROOM, Cause.NEIGHBOURS, Cause.OTHER)
_WITHOUT_NODES = (Cause.GPU, *_BESIDE_GPUS, Cause.UNAVAILABLE, Cause.TAINT, Cause.SELECTOR)
"""What to believe where the nodes do not decide. Taints and selectors come last: they also name all the nodes that
the pod was never meant for."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a verdict needs besides the pod: the nodes with GPUs in groups, or None when they are not known now."""

    gpus: GpuResources
    groups: tuple[NodeGroup, ...] | None = None


def reason(pod: Pod, cluster: Cluster) -> str:
    """The current reason of a pod whose phase is Pending."""
    if pod.node:
        return STARTING
    condition = pod.scheduled
    if pod.gated:
        return GATED
    if condition is None or condition.reason == "SchedulingGated":
        return NOT_TRIED
    if condition.status != "False" or condition.reason != "Unschedulable":
        return OTHER
    return _unschedulable(pod, causes(condition.message, cluster.gpus), cluster)


def _unschedulable(pod: Pod, named: frozenset[Cause], cluster: Cluster) -> str:
    if cluster.groups is not None and len(named) > 1:
        cause = verdict(pod, cluster.groups, named)
        if cause in named:
            return _REASONS[cause]
    return next((_REASONS[cause] for cause in _WITHOUT_NODES if cause in named), OTHER)


def verdict(pod: Pod, groups: tuple[NodeGroup, ...], named: frozenset[Cause]) -> Cause:
    """What keeps the pod from the nodes that offer its resources, by our own arithmetic.

    The filters are applied one after another; the one that leaves no node is the cause.
    """
    offering = [group for group in groups if _offers(group, pod.requests)]
    if not offering:
        return Cause.GPU
    chosen = [group for group in offering if selected(pod.needs, group.name, group.labels)]
    if not chosen:
        return Cause.SELECTOR
    open_ = [group for group in chosen if tolerated(pod.needs, group.taints)]
    if not open_:
        return Cause.TAINT
    usable = [group for group in open_ if group.usable]
    if not usable:
        return Cause.UNAVAILABLE
    if not any(_has_room(free, pod.requests) for group in usable for free in group.free):
        return Cause.GPU
    return next((cause for cause in _BESIDE_GPUS if cause in named), Cause.OTHER)


def _offers(group: NodeGroup, requests: Amounts) -> bool:
    return all(name in group.resources for name, _ in requests)


def _has_room(free: Amounts, requests: Amounts) -> bool:
    there = dict(free)
    return all(there.get(name, 0) >= count for name, count in requests)
