"""Keeps what attribution makes of pod metadata from one collection to the next, until allocations or pods change."""

from collections.abc import Collection, Sequence

from exporter.metric import Family, LabelPairs
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.pods.joined_allocations import PHASE_SECONDS, concerning, joined
from exporter.node.attribution.pods.status_allocations import status_allocations
from exporter.node.devices.series.labels import ExclusiveContainer
from exporter.node.pods.exposed_labels import NO_LABELS, ExposedLabels, exposed_labels
from exporter.node.pods.known_pods import KnownPods
from exporter.node.pods.metrics import metadata_families
from exporter.node.pods.options import PodOptions
from exporter.node.pods.pod import NodePods
from exporter.node.service_account.reasons import ApiReason
from exporter.snapshot import CollectionCycle, SourceProblem

_PodNames = tuple[tuple[str, str], ...]
"""Namespace and name of the pod that alone has each device; empty texts where none has."""


class PodMetadata:
    """What is known of the pods in one collection. Without a source nothing is, which is the default.

    For use by one thread.
    """

    def __init__(
        self, source: KnownPods | None, options: PodOptions, node: str, reservation_namespaces: Collection[str] = ()
    ) -> None:
        self._source, self._options, self._node = source, options, node
        self._reservation_namespaces = reservation_namespaces
        self.pods: NodePods | None = None
        """Those of the last `read`; None where nothing is known of them."""
        self.concerning: NodePods | None = None
        """Those of them that have to do with GPUs, as of the last `joined`."""
        self._concerned: tuple[Allocations | None, NodePods | None] = (None, None)
        """What `concerning` follows from."""
        self._phases = False
        self._join: tuple[tuple[Allocations, NodePods, bool], Allocations] | None = None
        self._labels_of: tuple[_PodNames, NodePods | None] = ((), None)
        self._labels: tuple[ExposedLabels, ...] = ()

    def read(self, cycle: CollectionCycle) -> None:
        """Take up what is known now, and record the health of the source."""
        if self._source is None:
            return
        fresh: NodePods | None = cycle.read(self._source, otherwise=None)
        self.pods = self._source.kept if fresh is None else fresh
        age = self._source.state.age
        self._phases = fresh is not None or (age is not None and age <= PHASE_SECONDS)

    def joined(self, allocations: Allocations | None) -> Allocations | None:
        """The allocations, with what is known of their pods.

        Where the kubelet's are unknown (None), those that current statuses of pods name.
        """
        if allocations is None and self.pods is not None and self._phases:
            allocations = status_allocations(self.pods)
        if allocations is None or self.pods is None:
            self.concerning, self._concerned = None, (None, None)
            return allocations
        if self.concerning is None or allocations is not self._concerned[0] or self.pods is not self._concerned[1]:
            self.concerning, self._concerned = concerning(allocations, self.pods), (allocations, self.pods)
        inputs = allocations, self.concerning, self._phases
        if self._join is None or self._join[0] != inputs:
            found = joined(allocations, self.concerning, self._reservation_namespaces, phases=self._phases)
            self._join = inputs, found
        return self._join[1]

    def labeled(self, rows: list[LabelPairs], containers: Sequence[ExclusiveContainer]) -> list[LabelPairs]:
        """Add the labels of the pod that alone has a device to the other labels of its series."""
        names = tuple((each.namespace, each.pod) for each in containers)
        if (names, self.pods) != self._labels_of:
            self._labels_of, self._labels = (names, self.pods), self._exposed(names)
        if not self.names:
            return rows
        return [(*row, *labels.pairs) for row, labels in zip(rows, self._labels, strict=True)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels that `labeled` added last."""
        return tuple(sorted({name for labels in self._labels for name, _ in labels.pairs}))

    def families(self) -> tuple[Family, ...]:
        """How current the metadata is, and what of it is left out."""
        if self._source is None:
            return ()
        exposed = dict(zip(self._labels_of[0], self._labels, strict=True))
        return metadata_families(self._source.state, exposed.values(), self._node)

    def problems(self) -> tuple[SourceProblem, ...]:
        """What is wrong although the pods are known."""
        problem = self._source.state.problem if self._source is not None else None
        if self._source is None or problem is None or problem[0] is not ApiReason.TOO_MANY_OBJECTS:
            return ()
        return (SourceProblem(self._source.name, *problem),)

    def close(self) -> None:
        """Close the source; bounded in time."""
        if self._source is not None:
            self._source.close()

    def _exposed(self, names: _PodNames) -> tuple[ExposedLabels, ...]:
        known = {(pod.namespace, pod.name): pod for pod in self.pods or ()}
        made = {name: exposed_labels(known[name], self._options) for name in set(names) if name in known}
        return tuple(made.get(name, NO_LABELS) for name in names)
