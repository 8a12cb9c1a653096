"""Uses what the cluster autoscaler says of its node groups: which kinds of nodes can come, and which are coming."""

import re
from collections.abc import Callable, Iterable

from exporter.cluster.kubernetes.converting.autoscaler_status import AutoscaledGroup, AutoscalerStatus
from exporter.cluster.kubernetes.objects.records import Node

_GROWS, _FAILED = "InProgress", "Backoff"
STATUS_SECONDS = 900.0
"""How long a status counts: it is written every ten seconds, and an older one is of an autoscaler that has ended."""
_MOST_KINDS = 200


def current(status: AutoscalerStatus | None, now: float) -> AutoscalerStatus | None:
    """The status while it counts; `now` is in seconds since the epoch."""
    return status if status is not None and status.at is not None and now - status.at <= STATUS_SECONDS else None


def can_come(nodes: Iterable[Node], status: AutoscalerStatus | None) -> list[Node]:
    """The nodes of whose pool more could be made: without those whose node groups are full, unhealthy or failed."""
    if status is None:
        return list(nodes)
    return [node for node in nodes if not (found := _groups(node, status)) or any(map(_can_grow, found))]


def coming(nodes: Iterable[Node], status: AutoscalerStatus | None) -> list[Node]:
    """One node of each kind of which the autoscaler is making more."""
    if status is None or not any(each.scale_up == _GROWS for each in status.groups):
        return []
    kinds: dict[object, Node] = {}
    grows: dict[str, bool] = {}
    for node in nodes:
        pool = node.description.pool
        if pool not in grows:
            grows[pool] = any(each.scale_up == _GROWS for each in _groups(node, status))
        if grows[pool] and len(kinds) < _MOST_KINDS:
            kinds.setdefault((node.description, node.capacity, node.taints), node)
    return list(kinds.values())


def failed_groups(status: AutoscalerStatus | None) -> tuple[str, ...]:
    """The names of the node groups whose last scale-up has failed."""
    return (
        () if status is None else tuple(each.name for each in status.groups if each.name and each.scale_up == _FAILED)
    )


def _can_grow(group: AutoscaledGroup) -> bool:
    return group.healthy and group.target < group.largest and group.scale_up != _FAILED


def _groups(node: Node, status: AutoscalerStatus) -> list[AutoscaledGroup]:
    """The node groups of the node's pool, in each zone one; none where no label names the pool."""
    if not node.description.pool:
        return []
    matches = _of_pool(node.description.pool)
    return [each for each in status.groups if matches(each.name)]


def _of_pool(pool: str) -> Callable[[str], object]:
    """Node groups are named after their pool (`gke-cluster-POOL-1a2b-grp`, `eks-POOL-…`, `aks-POOL-123-vmss`)."""
    return re.compile(rf"(?:^|[-/]){re.escape(pool)}(?:[-/]|$)").search
