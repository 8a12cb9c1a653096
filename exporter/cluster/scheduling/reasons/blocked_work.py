"""Finds GPU work that has no pods: held by a queue, or rejected by a quota or the API server. No I/O, no state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporter.cluster.kubernetes.converting.controllers import Controller
from exporter.cluster.kubernetes.converting.events import FAILED_CREATE, Event, events_about
from exporter.cluster.kubernetes.objects.records import Amounts
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason

_QUOTA_WORDS = ("exceeded quota", "failed quota", "insufficient quota", "ElasticQuota")
"""How the API server's quota rejects a pod."""
_REPEATED_SECONDS = 1200.0
"""How long an event of a controller counts: it tries again every 17 minutes at least."""


@dataclass(frozen=True, slots=True)
class BlockedWork:
    """A controller whose pods are missing, and why."""

    namespace: str
    kind: str
    name: str
    reason: PendingReason
    queue: str
    requests: Amounts
    """Devices of all missing pods, by resource name."""
    created: float
    """Since when the controller exists, in seconds since the epoch."""


def blocked_work(
    controllers: Iterable[Controller], events: Mapping[str, tuple[Event, ...]], now: float
) -> list[BlockedWork]:
    """The work that is blocked at `now` (seconds since the epoch). `events` are by the uid that they are about."""
    found = tuple(controllers)
    # A Workload is the queue's own record of a Job: the Job is not counted beside it.
    recorded = {(each.namespace, *each.owner) for each in found if each.kind == "Workload"}
    return [
        BlockedWork(each.namespace, each.kind, each.name, reason, each.queue, each.requests, each.created)
        for each in found
        if (each.namespace, each.kind, each.name) not in recorded
        and (reason := _reason(each, events_about(events, each.namespace, each.uid), now)) is not None
    ]


def _reason(controller: Controller, events: tuple[Event, ...], now: float) -> PendingReason | None:
    """Why its pods are missing; None where they are only on their way, or somebody suspended it by hand."""
    if controller.admitted is not None:
        return None
    if controller.suspended:
        # The pods of such a Workload exist and are gated: they are counted as pods.
        of_pods = controller.kind == "Workload" and controller.owner[0] in ("", "Pod")
        waits = controller.kind == "Workload" or bool(controller.queue)
        return PendingReason.QUEUED if waits and not of_pods else None
    failures = [event for event in events if event.reason == FAILED_CREATE and now - event.at <= _REPEATED_SECONDS]
    latest = max(failures, key=lambda event: event.at).message if failures else ""
    text = controller.failure or latest
    if not text:
        return None
    quota = any(words in text for words in _QUOTA_WORDS)
    return PendingReason.QUOTA if quota else PendingReason.ADMISSION_FAILED
