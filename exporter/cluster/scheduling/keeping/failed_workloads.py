"""Remembers which workloads failed on which node within the last seven days: several on one node speak of the node."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.kubernetes.pods.pod_failure import PodFailureReason

_REMEMBERED_SECONDS = 7 * 86400.0
_MOST_PODS = 20_000
_OF_THE_NODE = frozenset({PodFailureReason.ERROR, PodFailureReason.NODE_LOST})
"""How a pod ends whose node may be at fault; memory limits, evictions and preemptions have other causes."""


class _Failed(NamedTuple):
    node: str
    workload: tuple[str, str, str]
    at: float
    """When it failed, in seconds since the epoch: as seen, or when it was created, of those that were there before."""


@dataclass(slots=True)
class FailedWorkloads:
    """For use by the collection loop."""

    _pods: dict[str, _Failed] = field(default_factory=dict)
    """By uid."""
    _known: frozenset[str] = frozenset()
    """The uids of the pods that were there last: one that stays longer than it is remembered does not count again."""
    _begun: bool = False

    def update(self, failed: Iterable[Pod], now: float) -> Mapping[str, int]:
        """Note failed pods. Returns how many workloads failed on each node, of the nodes with any."""
        listed = {pod.uid: pod for pod in failed if pod.failure in _OF_THE_NODE}
        for uid in listed.keys() - self._known:
            pod = listed[uid]
            workload = (pod.namespace, pod.workload or pod.name, pod.workload_type)
            self._pods[uid] = _Failed(pod.node, workload, now if self._begun else pod.created)
        self._known, self._begun = frozenset(listed), True
        recent = [(uid, each) for uid, each in self._pods.items() if now - each.at <= _REMEMBERED_SECONDS]
        self._pods = dict(sorted(recent, key=lambda pair: pair[1].at)[-_MOST_PODS:])
        return Counter(node for node, _ in {(each.node, each.workload) for each in self._pods.values()})
