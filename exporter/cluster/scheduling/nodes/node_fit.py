"""Compares a pod with the nodes that have GPUs and finds what keeps it off them. No I/O, no state.

A scheduler's message counts nodes per cause and names no node: nodes without GPUs count as `Insufficient
nvidia.com/gpu`, and since 1.35 no taint is named. What a pod is short of follows from the nodes themselves.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum, auto

from exporter.cluster.kubernetes.objects.records import Amounts, Pod
from exporter.cluster.scheduling.nodes.free_capacity import NodeDevices, NodeGroup
from exporter.cluster.scheduling.nodes.node_selection import available, selected, tolerated


class Fit(Enum):
    """The first thing that leaves no node for the pod, in the order in which they are looked at."""

    UNKNOWN_RESOURCE = auto()
    """No node offers the resource, and none should."""
    NOT_SELECTED = auto()
    """Selector or affinity allow none of the nodes that offer it."""
    TOO_LARGE = auto()
    """None of these has as many devices as the pod requests."""
    TAINTED = auto()
    NODES_UNAVAILABLE = auto()
    GPUS_UNAVAILABLE = auto()
    """These nodes should have enough devices, and do not offer them now."""
    FULL = auto()
    FRAGMENTED = auto()
    """Enough devices are free on these nodes in all."""
    ROOM = auto()
    """A node has enough free devices."""


def fit(pod: Pod, groups: Sequence[NodeGroup]) -> Fit:
    """Find what leaves no node for the pod. What can never be met comes before what is short now."""
    requests = pod.requests
    offering = [group for group in groups if any(_could_offer(each, requests) for each in group.devices)]
    if not offering:
        return Fit.UNKNOWN_RESOURCE
    matching = [group for group in offering if selected(pod.constraints, group.name, group.labels)]
    if not matching:
        return Fit.NOT_SELECTED
    if not any(_large_enough(each, requests) for each in _devices(matching)):
        return Fit.TOO_LARGE
    return _fit_among(pod, matching)


def _fit_among(pod: Pod, matching: list[NodeGroup]) -> Fit:
    """Find what keeps the pod off these nodes, of which one at least is large enough."""
    requests = pod.requests
    allowed = [group for group in matching if tolerated(pod.constraints, group.taints)]
    if not any(_large_enough(each, requests) for each in _devices(allowed)):
        return Fit.TAINTED
    usable = [group for group in allowed if available(pod.constraints, group)]
    if not any(_large_enough(each, requests) for each in _devices(usable)):
        return Fit.NODES_UNAVAILABLE
    devices = list(_devices(usable))
    if not any(_covers(each.allocatable, requests) for each in devices):
        return Fit.GPUS_UNAVAILABLE
    if any(_covers(each.free, requests) for each in devices):
        return Fit.ROOM
    return Fit.FRAGMENTED if _covers(_all_free(usable), requests) else Fit.FULL


def _devices(groups: Iterable[NodeGroup]) -> Iterable[NodeDevices]:
    return (each for group in groups for each in group.devices)


def _could_offer(devices: NodeDevices, requests: Amounts) -> bool:
    """Whether the node offers some of every requested resource, or should."""
    counts = dict(devices.capacity)
    return all(counts.get(name, 0) or devices.should_offer(name, 1) for name, _ in requests)


def _large_enough(devices: NodeDevices, requests: Amounts) -> bool:
    """Whether the node has, or should have, as many devices as are requested, whether or not they are free."""
    counts = dict(devices.capacity)
    return all(counts.get(name, 0) >= count or devices.should_offer(name, count) for name, count in requests)


def _covers(available: Amounts, requests: Amounts) -> bool:
    counts = dict(available)
    return all(counts.get(name, 0) >= count for name, count in requests)


def _all_free(groups: Iterable[NodeGroup]) -> Amounts:
    sums: Counter[str] = Counter()
    for group in groups:
        for devices, nodes in group.devices.items():
            for name, count in devices.free:
                sums[name] += count * nodes
    return tuple(sums.items())
