"""Writes all pending GPU workloads and the free capacity of a cluster, as text and as JSON."""

from collections.abc import Iterable, Sequence

from exporter.cluster.scheduling.explaining.overview import PendingWork, pending_work
from exporter.cluster.scheduling.nodes.capacity import Capacity, capacities
from exporter.cluster.scheduling.reasons.blocked_work import blocked_work
from exporter.cluster.view import ClusterView
from exporter.commands.explain.sources import ObjectSource
from exporter.commands.explain.text import amounts, as_json, lines, not_seen_text
from exporter.commands.explain.watcher import WatcherAnswer
from exporter.commands.terminal import aligned
from exporter.config import ConfigError
from exporter.time_text import age, utc

_PENDING = ("WORKLOAD", "TYPE", "PODS", "PENDING FOR", "REASON", "REQUESTS", "OLDEST POD")
_CAPACITY = ("MODEL", "RESOURCE", "NODES", "ALLOCATABLE", "FREE", "SCHEDULABLE", "LARGEST FREE BLOCK")


def overview(source: ObjectSource, view: ClusterView, answer: WatcherAnswer | None, *, json: bool) -> str:
    """All pending GPU workloads, the oldest first, and the free GPUs by model and resource.

    Raises ConfigError where the pods may not be read.
    """
    if view.pods is None and source.not_seen:
        raise ConfigError("the pods of all namespaces may not be read; name one pod as NAMESPACE/POD")
    blocked = blocked_work(view.controllers, view.events, view.now)
    pending = pending_work(view.pending, blocked)
    free = _capacities(view)
    if free is None and answer is not None:
        free = list(answer.capacities)
    if json:
        return as_json(
            {
                "pending": [_pending_facts(each) for each in pending],
                "capacity": None if free is None else capacity_facts(free),
                "not_seen": source.not_seen,
            }
        )
    return lines([*_pending_text(pending, view.now), "", *capacity_text(free), *not_seen_text(source.not_seen)])


def _capacities(view: ClusterView) -> list[Capacity] | None:
    """The devices that nodes offer; None where the nodes or the pods are not known."""
    if view.nodes is None or view.pods is None:
        return None
    found = capacities(view.gpu_nodes(), view.requested(), view.devices.by_node)
    return [each for each in found if each.offered]


def _pending_text(pending: list[PendingWork], now: float) -> Iterable[str]:
    if not pending:
        return ["No GPU workload is pending."]
    rows = [_pending_row(each, now) for each in pending]
    return ["Pending GPU workloads:", *(f"  {line}" for line in aligned([_PENDING, *rows]))]


def _pending_row(each: PendingWork, now: float) -> tuple[str, ...]:
    return (
        f"{each.namespace}/{each.name}",
        each.type,
        str(len(each.pods)),
        age(now - each.since),
        str(each.reason),
        amounts(each.requests),
        each.pods[0] if each.pods else "none yet",
    )


def capacity_text(free: Sequence[Capacity] | None) -> Iterable[str]:
    """The free GPUs as a table; None where they are not known."""
    if free is None:
        return ["The nodes are not known, so no free GPUs are shown."]
    if not free:
        return ["No node offers GPUs."]
    rows = [_capacity_row(each) for each in free]
    return ["GPUs of the nodes:", *(f"  {line}" for line in aligned([_CAPACITY, *rows]))]


def _capacity_row(each: Capacity) -> tuple[str, ...]:
    numbers = (each.nodes, each.allocatable, each.free, each.schedulable, each.largest)
    return (each.model or "unknown", each.resource, *map(str, numbers))


def _pending_facts(each: PendingWork) -> dict[str, object]:
    return {
        "namespace": each.namespace,
        "workload": each.name,
        "workload_type": each.type,
        "reason": str(each.reason),
        "pending_since": utc(each.since),
        "pods": list(each.pods),
        "requests": dict(each.requests),
    }


def capacity_facts(free: Iterable[Capacity]) -> list[dict[str, object]]:
    """The same facts as `capacity_text`."""
    return [
        {
            "model": each.model,
            "resource": each.resource,
            "nodes": each.nodes,
            "allocatable": each.allocatable,
            "free": each.free,
            "schedulable": each.schedulable,
            "largest_free_block": each.largest,
        }
        for each in free
    ]
