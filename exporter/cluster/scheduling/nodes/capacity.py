"""Sums up the GPUs of nodes by model and resource: how many are offered, are free, and are free on one node. No I/O."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.scheduling.nodes.device_claims import DeviceCount
from exporter.cluster.scheduling.nodes.free_capacity import Requested, free_on, schedulable, with_claimable


@dataclass(frozen=True, slots=True)
class Capacity:
    """The devices of one resource on the nodes with one GPU model."""

    model: str
    """Empty where no label names it."""
    resource: str
    nodes: int
    allocatable: int
    free: int
    """On all nodes."""
    schedulable: int
    """Free on nodes that are ready and not cordoned."""
    largest: int
    """Most free devices on one such node."""

    @classmethod
    def of(cls, model: str, resource: str, nodes: list[tuple[int, int, bool]]) -> Self:
        """Sum over nodes, each as (allocatable, free, schedulable)."""
        usable = [free for _, free, schedulable in nodes if schedulable]
        return cls(
            model,
            resource,
            sum(count > 0 for count, _, _ in nodes),
            sum(count for count, _, _ in nodes),
            sum(free for _, free, _ in nodes),
            sum(usable),
            max(usable, default=0),
        )

    @property
    def offered(self) -> bool:
        """Whether any node offers such a device to pods."""
        return self.allocatable > 0


def capacities(
    nodes: Iterable[Node], requests: Requested, claimable: Mapping[str, tuple[DeviceCount, ...]]
) -> list[Capacity]:
    """Sum the devices of nodes by GPU model and resource, also of those that no node offers now.

    `requests` is what pods on each node request, `claimable` the devices of DRA, by node.
    """
    found: dict[tuple[str, str], list[tuple[int, int, bool]]] = defaultdict(list)
    for node in nodes:
        counts = claimable.get(node.name, ())
        allocatable = with_claimable(node.allocatable, tuple((each.name, each.allocatable) for each in counts))
        free = dict(with_claimable(free_on(node, requests), tuple((each.name, each.free) for each in counts)))
        for name, count in allocatable:
            found[node.description.model, name].append((count, free.get(name, 0), schedulable(node)))
    return [Capacity.of(*key, each) for key, each in sorted(found.items())]
