"""Events: the few reasons that are kept, because nothing else states them."""

from collections.abc import Mapping
from sys import intern

import msgspec

from exporter.api_objects.timestamps import timestamp
from exporter.api_objects.wire import ObjectMeta

FAILED_CREATE = "FailedCreate"
"""A controller cannot make a pod: a quota, or the API server's admission."""
TRIGGERED_SCALE_UP = "TriggeredScaleUp"
NOT_TRIGGERED_SCALE_UP = "NotTriggerScaleUp"
NOMINATED = "Nominated"
"""Karpenter makes a node for the pod, or has one that is starting."""
VOLUME_EVENTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
SANDBOX_EVENTS = frozenset({"FailedCreatePodSandBox", "FailedCreatePodSandbox"})
CLAIM_EVENTS = frozenset({"FailedPrepareDynamicResources"})
_KEPT = (
    frozenset({FAILED_CREATE, TRIGGERED_SCALE_UP, NOT_TRIGGERED_SCALE_UP, NOMINATED})
    | VOLUME_EVENTS
    | SANDBOX_EVENTS
    | CLAIM_EVENTS
)
_FREQUENT = (
    "Scheduled",
    "FailedScheduling",
    "Pulling",
    "Pulled",
    "Created",
    "Started",
    "Killing",
    "BackOff",
    "Unhealthy",
    "SuccessfulCreate",
    "SuccessfulDelete",
    "ScalingReplicaSet",
    "Completed",
)
SELECTOR = {"fieldSelector": ",".join(f"reason!={reason}" for reason in _FREQUENT)}
"""A field selector has no alternatives: the usual events of a cluster, which nobody here needs, are left out."""
_MESSAGE_LENGTH = 512


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event about a pod or a controller."""

    namespace: str
    """Its own; the API server accepts an event about an object of a namespace in that namespace alone."""
    kind: str
    """The kind of the object that the event is about."""
    name: str
    uid: str
    reason: str
    message: str
    at: float
    """When it was last seen, in seconds since the epoch."""


class _ObjectReference(msgspec.Struct, gc=False):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Series(msgspec.Struct, gc=False, rename="camel"):
    last_observed_time: str | None = None


class WireEvent(msgspec.Struct, gc=False, rename="camel"):
    metadata: ObjectMeta
    involved_object: _ObjectReference
    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None


def events_about(events: Mapping[str, tuple[Event, ...]], namespace: str, uid: str) -> tuple[Event, ...]:
    """The events about the object of this namespace that has the uid; `events` are by the uid that they name.

    Who may write events in another namespace can name any uid there, and must not change what is said of this object.
    """
    found = events.get(uid, ())
    return found if all(each.namespace == namespace for each in found) else _of(found, namespace)


def _of(events: tuple[Event, ...], namespace: str) -> tuple[Event, ...]:
    return tuple(each for each in events if each.namespace == namespace)


def event(decoded: WireEvent) -> Event | None:
    """Convert an event; return None for one that nobody needs."""
    if decoded.reason not in _KEPT:
        return None
    about, series = decoded.involved_object, decoded.series or _Series()
    seen = (series.last_observed_time, decoded.last_timestamp, decoded.event_time, decoded.metadata.creation_timestamp)
    return Event(
        intern(decoded.metadata.namespace),
        intern(about.kind),
        about.name,
        about.uid,
        intern(decoded.reason),
        intern((decoded.message or "")[:_MESSAGE_LENGTH]),
        max((at for text in seen if (at := timestamp(text)) is not None), default=0.0),
    )
