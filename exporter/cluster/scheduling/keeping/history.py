"""What the watcher remembers from one collection to the next: when workloads last ran, failed pods, lost nodes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from exporter.cluster.kubernetes.objects.records import Node, Pod
from exporter.cluster.scheduling.keeping.failed_workloads import FailedWorkloads
from exporter.cluster.scheduling.keeping.node_chunks import NodeChunks
from exporter.cluster.scheduling.keeping.node_sums import NodeSums
from exporter.cluster.scheduling.keeping.pod_chunks import PodChunks
from exporter.cluster.scheduling.keeping.waits import SchedulingWaits
from exporter.cluster.scheduling.reasons.pending_pods import PendingPod

Workload = tuple[str, str, str]
"""(namespace, name, type)."""
PodRejection = tuple[str, str, str]
"""(namespace, node, workload)."""
PodFailure = tuple[str, str]
"""(node, how the pod ended)."""
K = TypeVar("K")
_GONE_SECONDS = 900.0
"""How long a workload without pods is remembered: a controller makes its pods anew within that time."""
_LOST_NODE_SECONDS = 7 * 86400.0
_MOST_WORKLOADS = 20_000
_MOST_COUNTS = 20_000
_MOST_SHAPES = 200


def workload_of(pod: Pod) -> Workload:
    """The workload that the pod belongs to."""
    return pod.namespace, pod.workload, pod.workload_type


@dataclass(slots=True)
class _Clock:
    since: float
    """Since when the workload is pending without a pod that runs, in seconds since the epoch."""
    seen_at: float


@dataclass(slots=True)
class WorkloadClocks:
    """Since when each workload is pending, also while its controller makes its pods anew every few minutes."""

    _clocks: dict[Workload, _Clock] = field(default_factory=dict)

    def update(self, pods: Iterable[Pod], pending: Iterable[PendingPod], now: float) -> dict[Workload, float]:
        """Return since when each workload with schedulable pending pods is pending, in seconds since the epoch.

        That is since it last ran; while some of its pods run, since its oldest pending pod could be scheduled.
        """
        runs = {workload_of(pod) for pod in pods if pod.phase == "Running" and not pod.deleting}
        oldest: dict[Workload, float] = {}
        for each in pending:
            if each.pod.schedulable_since is not None:
                workload = workload_of(each.pod)
                oldest[workload] = min(oldest.get(workload, each.since), each.since)
        for workload, since in oldest.items():
            clock = self._clocks.setdefault(workload, _Clock(since, now))
            clock.since, clock.seen_at = (since if workload in runs else min(clock.since, since)), now
        self._forget(runs - oldest.keys(), now)
        return {workload: self._clocks[workload].since for workload in oldest if workload in self._clocks}

    def _forget(self, ran: set[Workload], now: float) -> None:
        """Forget the workloads that run again or have been gone for long, and the newest of too many."""
        self._clocks = {
            workload: clock
            for workload, clock in self._clocks.items()
            if workload not in ran and now - clock.seen_at <= _GONE_SECONDS
        }
        for workload in sorted(self._clocks, key=lambda each: self._clocks[each].since)[_MOST_WORKLOADS:]:
            del self._clocks[workload]


@dataclass(slots=True)
class PodCounts(Generic[K]):
    """Counts pods as they come, each once, but not those that the first collection finds: they came before."""

    key: Callable[[Pod], K]
    """What the pods are counted by."""
    _known: set[str] | None = None
    _counts: Counter[K] = field(default_factory=Counter)

    def update(self, pods: Iterable[Pod], unclear: Iterable[Pod] = ()) -> Mapping[K, int]:
        """Count the pods that are new, by uid. Returns all counts; the largest ones where they are many.

        Those that failed while it was `unclear` whether they had GPUs are not new when that is found out.
        """
        found = {pod.uid: pod for pod in pods}
        if self._known is not None:
            self._counts.update(self.key(found[uid]) for uid in found.keys() - self._known)
        self._known = {*found, *(pod.uid for pod in unclear if pod.phase == "Failed")}
        if len(self._counts) > _MOST_COUNTS:
            self._counts = Counter(dict(self._counts.most_common(_MOST_COUNTS)))
        return dict(self._counts)

    def keep(self, wanted: Callable[[K], bool]) -> None:
        """Forget all other counts."""
        self._counts = Counter({key: count for key, count in self._counts.items() if wanted(key)})


@dataclass(slots=True)
class Presence:
    """Which names were there lately: what is counted of an object ends some time after the object."""

    _seen: dict[str, float] = field(default_factory=dict)

    def update(self, names: Iterable[str], now: float) -> None:
        """Note the names that are there. Those that are gone for 15 minutes are no longer there."""
        self._seen.update(dict.fromkeys(names, now))
        self._seen = {name: at for name, at in self._seen.items() if now - at <= _GONE_SECONDS}

    def __contains__(self, name: object) -> bool:
        return name in self._seen


@dataclass(slots=True)
class LostNodes:
    """Remembers the kinds of GPU nodes that are gone for less than a week: an autoscaler can make such nodes again."""

    _present: dict[str, Node] = field(default_factory=dict)
    _lost: dict[object, tuple[Node, float]] = field(default_factory=dict)

    def update(self, nodes: Sequence[Node], now: float) -> tuple[Node, ...]:
        """Return one node of each kind that is gone, as it would be if it were made again."""
        present = {node.name: node for node in nodes}
        for name in self._present.keys() - present.keys():
            node = self._present[name]
            self._lost[node.description, node.capacity] = (node, now)
        self._present = present
        self._lost = {kind: lost for kind, lost in self._lost.items() if now - lost[1] <= _LOST_NODE_SECONDS}
        for kind in sorted(self._lost, key=lambda each: -self._lost[each][1])[_MOST_SHAPES:]:
            del self._lost[kind]
        return tuple(node for node, _ in self._lost.values())


@dataclass(slots=True)
class ClusterHistory:
    """Everything that one watcher remembers. For use by the collection loop."""

    clocks: WorkloadClocks = field(default_factory=WorkloadClocks)
    rejections: PodCounts[PodRejection] = field(
        default_factory=lambda: PodCounts(lambda pod: (pod.namespace, pod.node, pod.workload))
    )
    failures: PodCounts[PodFailure] = field(default_factory=lambda: PodCounts(lambda pod: (pod.node, pod.failure)))
    failed_workloads: FailedWorkloads = field(default_factory=FailedWorkloads)
    lost_nodes: LostNodes = field(default_factory=LostNodes)
    waits: SchedulingWaits = field(default_factory=SchedulingWaits)
    chunks: PodChunks = field(default_factory=PodChunks)
    node_sums: NodeSums = field(default_factory=NodeSums)
    node_chunks: NodeChunks = field(default_factory=NodeChunks)
    namespaces: Presence = field(default_factory=Presence)
    nodes: Presence = field(default_factory=Presence)

    def end_with_namespaces(self, names: Iterable[str], now: float) -> None:
        """Forget what was counted of namespaces other than these, which are gone for a while."""
        self.namespaces.update(names, now)
        self.rejections.keep(lambda key: key[0] in self.namespaces)
        self.waits.keep(lambda group: group[0] in self.namespaces)

    def end_with_nodes(self, names: Iterable[str], now: float) -> None:
        """Forget what was counted of nodes other than these, which are gone for a while."""
        self.nodes.update(names, now)
        self.rejections.keep(lambda key: key[1] in self.nodes)
        self.failures.keep(lambda key: key[0] in self.nodes)
