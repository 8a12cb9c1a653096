"""Divides the GPU pods into chunks that stay the same objects while nothing in them changes.

What is made of a chunk, such as its lines in `/metrics`, need not be made again then: of a hundred thousand pods only
few change between two collections. No I/O.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeVar

from exporter.cluster.kubernetes.objects.records import Overrides, Pod

AVERAGE = 256
"""Pods of a chunk. One ends with every pod whose uid has a certain hash, so that a pod that comes or goes changes its
own chunk only."""
MOST = 8 * AVERAGE
_NONE = Overrides()
T = TypeVar("T")
_NAMES = ("namespace", "name", "uid")
_INFO = attrgetter(*_NAMES, "node", "workload", "workload_type", "overrides", "priority_class")
_START = attrgetter(*_NAMES, "started")
_PHASE = attrgetter(*_NAMES, "phase")


class ChunkStamps(NamedTuple):
    """Each stands for some fields of a chunk's pods: it is the object that it was before while none of them changed.

    Most changes of a pod are of few fields, and what is made of the others need not be made again.
    """

    info: object
    """What identifies the pods, where they are, and what their namespaces and owners set."""
    start: object
    phase: object


@dataclass(frozen=True, slots=True, eq=False)
class PodChunk:
    """Some pods that follow each other by namespace and name, and what their namespaces set."""

    pods: tuple[Pod, ...]
    names: tuple[str, ...]
    """Of their namespaces, in the order of the pods."""
    overrides: tuple[Overrides | None, ...] | None
    """By position in `names`; None of a namespace that is not known, and of all while they are not."""
    with_overrides: tuple[Pod, ...]
    """The pods that set an override themselves."""
    stamps: ChunkStamps


def chunks_of(
    pods: Sequence[Pod], namespaces: Mapping[str, Overrides] | None, known: Mapping[str, PodChunk] | None = None
) -> tuple[PodChunk, ...]:
    """Divide pods that are sorted by namespace and name.

    Chunks of `known`, by the uid of the first pod, are kept where they are equal.
    """
    return tuple(_chunk(part, namespaces, (known or {}).get(part[0].uid)) for part in parts(pods, lambda pod: pod.uid))


@dataclass(slots=True)
class PodChunks:
    """The chunks of the last collection."""

    _pods: tuple[Pod, ...] = ()
    _namespaces: Mapping[str, Overrides] | None = None
    _chunks: tuple[PodChunk, ...] = field(default_factory=tuple)

    def update(self, pods: tuple[Pod, ...], namespaces: Mapping[str, Overrides] | None) -> tuple[PodChunk, ...]:
        """Return the chunks of these pods, in any order; those that are as before are the same objects."""
        if pods != self._pods or namespaces != self._namespaces:
            known = {chunk.pods[0].uid: chunk for chunk in self._chunks}
            self._chunks = chunks_of(by_name(pods), namespaces, known)
            self._pods, self._namespaces = pods, namespaces
        return self._chunks


def by_name(pods: Sequence[Pod]) -> list[Pod]:
    """Sort pods by namespace and name."""
    return sorted(pods, key=lambda pod: (pod.namespace, pod.name))


def parts(given: Sequence[T], name: Callable[[T], str]) -> Iterator[tuple[T, ...]]:
    """Divide records by the hashes of their names: one that comes or goes changes the division in one place only."""
    begin = 0
    for end, each in enumerate(given, start=1):
        if hash(name(each)) % AVERAGE == 0 or end - begin == MOST:
            yield tuple(given[begin:end])
            begin = end
    if begin < len(given):
        yield tuple(given[begin:])


def _chunk(pods: tuple[Pod, ...], namespaces: Mapping[str, Overrides] | None, known: PodChunk | None) -> PodChunk:
    same = known is not None and known.pods == pods
    names = known.names if known is not None and same else tuple(dict.fromkeys(pod.namespace for pod in pods))
    overrides = None if namespaces is None else tuple(namespaces.get(name) for name in names)
    if known is not None and same and known.overrides == overrides:
        return known
    stamps = _stamps(pods, overrides, known)
    return PodChunk(pods, names, overrides, tuple(pod for pod in pods if pod.overrides != _NONE), stamps)


def _stamps(
    pods: tuple[Pod, ...], overrides: tuple[Overrides | None, ...] | None, known: PodChunk | None
) -> ChunkStamps:
    if known is None or len(known.pods) != len(pods):
        return ChunkStamps(object(), object(), object())
    pairs = [(one, other) for one, other in zip(known.pods, pods, strict=True) if one is not other]
    kept = known.stamps

    def same(fields: Callable[[Pod], object]) -> bool:
        return all(fields(one) == fields(other) for one, other in pairs)

    return ChunkStamps(
        kept.info if known.overrides == overrides and same(_INFO) else object(),
        kept.start if same(_START) else object(),
        kept.phase if same(_PHASE) else object(),
    )
