"""Counts how long GPU pods waited from when they could be scheduled until they were bound to a node. No I/O."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from exporter.cluster.kubernetes.objects.records import Pod
from exporter.gpu_names import resource_label

BOUNDS = (10.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0)
"""Seconds: few, because each is a series per namespace, resource and size."""
_SIZES = ((1, "1"), (4, "2-4"), (8, "5-8"))
_MOST_GROUPS = 20_000
"""Bounds the memory; how many are exposed is limited with all other series."""

WaitGroup = tuple[str, str, str]
"""(namespace, resource as a label value, size)."""


@dataclass(slots=True)
class Waits:
    """The waits of one group."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    """Per bound, the waits up to it and above the bound before; at the end those above all bounds."""
    total: float = 0.0
    """Seconds."""

    def add(self, seconds: float) -> None:
        """Count one wait."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class SchedulingWaits:
    """Counts the pods that are bound as they come, each once, but not those that the first collection finds bound."""

    _known: set[str] | None = None
    _groups: dict[WaitGroup, Waits] = field(default_factory=dict)

    def update(self, pods: Iterable[Pod], unclear: Iterable[Pod] = ()) -> Mapping[WaitGroup, Waits]:
        """Count the pods that are newly bound. Returns the waits of all groups, of which there are 20,000 at most.

        Those that were bound while it was `unclear` whether they had GPUs are not new when that is found out.
        """
        bound = {pod.uid: pod for pod in pods if pod.node and pod.scheduled is not None}
        if self._known is not None:
            for uid in bound.keys() - self._known:
                self._add(bound[uid])
        self._known = {*bound, *(pod.uid for pod in unclear if pod.node)}
        return self._groups

    def keep(self, wanted: Callable[[WaitGroup], bool]) -> None:
        """Forget the waits of all other groups."""
        self._groups = {group: waits for group, waits in self._groups.items() if wanted(group)}

    def _add(self, pod: Pod) -> None:
        condition = pod.scheduled
        if condition is None or condition.status != "True" or condition.since is None or pod.schedulable_since is None:
            return
        for name, count in pod.requests:
            group = (pod.namespace, resource_label(name), size_of(count))
            if group in self._groups or len(self._groups) < _MOST_GROUPS:
                self._groups.setdefault(group, Waits()).add(max(0.0, condition.since - pod.schedulable_since))


def size_of(devices: int) -> str:
    """The label `size` of pods with so many devices."""
    """The label `size` of pods with so many devices."""
    return next((name for most, name in _SIZES if devices <= most), "9+")
