"""Finds GPUs that are free and cannot be used, because their node lacks CPUs, memory or places for pods. No I/O."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Literal, NamedTuple

from exporter.cluster.kubernetes.objects.records import Amounts, Load, Node, OtherPod, Pod
from exporter.gpu_names import WHOLE_GPU

Blocker = Literal["cpu", "memory", "pods"]
FOR_A_GPU = Load(cpu=2000, memory=8 * 2**30)
"""What a pod needs at least to use a whole GPU: two CPUs and 8 GiB."""
FOR_A_PART = Load(cpu=500, memory=2 * 2**30)
"""What it needs for a MIG device, a replica of a shared GPU or a fraction."""


class StrandedGpus(NamedTuple):
    """Free GPUs of one resource on one node that cannot be used."""

    resource: str
    devices: int
    blocker: Blocker
    """What the fewest of them have."""


def loads(pods: Iterable[Pod], others: Iterable[OtherPod]) -> dict[str, Load]:
    """Sum what the pods take, by node. A pod being deleted counts until it is gone."""
    sums: dict[str, tuple[int, int, int]] = {}
    every = chain(((pod.node, pod.load) for pod in pods), ((pod.node, pod.load) for pod in others))
    for node, load in every:
        if node:
            cpu, memory, number = sums.get(node, (0, 0, 0))
            sums[node] = cpu + load.cpu, memory + load.memory, number + 1
    return {node: Load(*each) for node, each in sums.items()}


def stranded(node: Node, free: Amounts, taken: Mapping[str, Load]) -> list[StrandedGpus]:
    """The free GPUs of the node that cannot be used, by resource. What is not known of the node blocks nothing."""
    used = taken.get(node.name, Load(pods=0))
    found = []
    for name, count in free:
        need = FOR_A_GPU if name == WHOLE_GPU else FOR_A_PART
        blocker, usable = min(_usable(node.room, used, need), key=lambda each: each[1], default=("cpu", count))
        if usable < count:
            found.append(StrandedGpus(name, count - usable, blocker))
    return found


def _usable(room: Load, used: Load, need: Load) -> Iterable[tuple[Blocker, int]]:
    """For how many GPUs each part of what is left is enough."""
    if room.cpu:
        yield "cpu", max(0, room.cpu - used.cpu) // need.cpu
    if room.memory:
        yield "memory", max(0, room.memory - used.memory) // need.memory
    if room.pods:
        yield "pods", max(0, room.pods - used.pods)
