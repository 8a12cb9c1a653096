"""What a reflector of the node exporter reads, and what it knows of it. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from exporter.node.service_account.reasons import ApiReason

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WatchedKind(Generic[T]):
    """A kind of object, of which all that a selector selects are listed and watched."""

    name: str
    """In the plural, for messages and the name of the thread."""
    paths: tuple[str, ...]
    """Where it is requested, such as `/api/v1/pods`: of each version that is understood, the preferred one first."""
    decode: Callable[[msgspec.Raw], T | None]
    """Makes of an object's JSON what is kept of it; None where nothing is.

    Whatever it raises costs this object alone.
    """
    query: Mapping[str, str] = field(default_factory=dict)
    """Of every list and watch, such as `{"fieldSelector": "spec.nodeName=n1"}`."""
    most: int = 5000
    """How many objects are kept at most."""


@dataclass(frozen=True, slots=True)
class ReflectorView(Generic[T]):
    """What is known of a kind at one moment."""

    objects: tuple[T, ...] | None
    """Sorted by namespace and name, and the same tuple until one of them changes.

    None before the first list has ended, and while the API server has not confirmed them for too long.
    """
    synced_at: float | None = None
    """When the API server last confirmed them, in seconds since the epoch; None before the first list."""
    age: float | None = None
    """How many seconds ago that was."""
    malformed: int = 0
    """How many objects could not be decoded so far."""
    problem: tuple[ApiReason, str] | None = None
    """(reason, message) while there is one; the objects may be known all the same."""
