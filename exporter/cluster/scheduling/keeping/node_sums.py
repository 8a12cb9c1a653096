"""Sums what the pods on each node take, and keeps the sums: only pods that changed are subtracted and added. No I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from exporter.cluster.kubernetes.objects.records import Load, OtherPod, Pod
from exporter.cluster.scheduling.nodes.free_capacity import Requested, requested
from exporter.cluster.scheduling.nodes.stranded import loads

R = TypeVar("R", Pod, OtherPod)
K = TypeVar("K")
V = TypeVar("V")
_NOTHING = Load(pods=0)
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(slots=True)
class Difference(Generic[R]):
    """Finds the records that came and went since the last collection.

    A record never changes, and a store keeps the same object until it gets another: objects are compared, not contents.
    """

    _known: dict[int, R] = field(default_factory=dict)

    def update(self, records: Iterable[R]) -> tuple[list[R], list[R]]:
        """Return (those that went, those that came); an object that changed is among both."""
        before, now = self._known, {id(each): each for each in records}
        self._known = now
        return [before[key] for key in before.keys() - now.keys()], [now[key] for key in now.keys() - before.keys()]


@dataclass(frozen=True, slots=True)
class TakenOnNodes:
    """What the pods on each node take."""

    requests: Requested
    names: Mapping[str, frozenset[str]]
    """The resources that are requested, by node."""
    loads: Mapping[str, Load]
    """By node. A pod being deleted counts until it is gone."""
    changed: set[str]
    """The nodes on which a sum differs from those with the stamp `after`."""
    stamp: object
    after: object


@dataclass(slots=True)
class NodeSums:
    """The sums of the last collection."""

    _pods: Difference[Pod] = field(default_factory=Difference[Pod])
    _others: Difference[OtherPod] = field(default_factory=Difference[OtherPod])
    _requests: dict[tuple[str, str], int] = field(default_factory=dict)
    _names: dict[str, frozenset[str]] = field(default_factory=dict)
    _loads: dict[str, Load] = field(default_factory=dict)
    _stamp: object = field(default_factory=object)

    def update(self, pods: Iterable[Pod], others: Iterable[OtherPod]) -> TakenOnNodes:
        """Return the sums over all these pods; `others` are those without GPUs."""
        gone, come = self._pods.update(pods)
        others_gone, others_come = self._others.update(others)
        requests = Counter(requested(come))
        requests.subtract(requested(gone))
        taken, given_back = loads(come, others_come), loads(gone, others_gone)
        # Most pods that change take as much as before: nothing is touched for these.
        changed = {key for key, count in requests.items() if count}
        loaded = {node for node in taken.keys() | given_back.keys() if taken.get(node) != given_back.get(node)}
        for key in changed:
            self._add(key, requests[key])
        for node in loaded:
            load = _sum(self._loads.get(node, _NOTHING), taken.get(node, _NOTHING), given_back.get(node, _NOTHING))
            _keep(self._loads, node, load, _NOTHING)
        # Copies, because a page may still be made of the last collection's sums.
        nodes = loaded | {node for node, _ in changed}
        after, self._stamp = self._stamp, object()
        return TakenOnNodes(dict(self._requests), dict(self._names), dict(self._loads), nodes, self._stamp, after)

    def _add(self, key: tuple[str, str], count: int) -> None:
        node, name = key
        total = self._requests.get(key, 0) + count
        names = self._names.get(node, _NO_NAMES)
        _keep(self._requests, key, total, 0)
        _keep(self._names, node, names | {name} if total else names - {name}, _NO_NAMES)


def _keep(sums: dict[K, V], key: K, value: V, nothing: V) -> None:
    """Set a sum, which ends with the last pod that adds to it."""
    if value == nothing:
        sums.pop(key, None)
    else:
        sums[key] = value


def _sum(before: Load, more: Load, less: Load) -> Load:
    return Load(
        before.cpu + more.cpu - less.cpu, before.memory + more.memory - less.memory, before.pods + more.pods - less.pods
    )
