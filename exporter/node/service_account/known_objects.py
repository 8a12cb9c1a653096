"""The objects that a reflector knows, and how current they are. Every method may be called from any thread."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from exporter.node.service_account.reasons import ApiReason
from exporter.node.service_account.watched_kind import ReflectorView

T = TypeVar("T")
_CONNECTING = (ApiReason.CONNECTING, "the first list has not ended yet")


class KnownObjects(Generic[T]):
    """Objects by namespace and name, at most `most` of them."""

    def __init__(self, most: int, clock: Callable[[], float], wall: Callable[[], float] = time.time) -> None:
        """`clock` is in seconds and never jumps; `wall` in seconds since the epoch."""
        self._most, self._clock, self._wall = most, clock, wall
        self._lock = threading.Lock()
        self._objects: dict[str, T] = {}
        self._sorted: tuple[T, ...] = ()
        self._changed = False
        self._confirmed_at: float | None = None
        self._synced_at: float | None = None
        self._malformed = 0
        self._problem: tuple[ApiReason, str] | None = _CONNECTING
        self._full = False
        """Whether objects are left out because there are too many."""

    def replace(self, objects: Mapping[str, T]) -> None:
        """Replace all objects by those of a complete list."""
        with self._lock:
            kept = dict(list(objects.items())[: self._most])
            self._full = len(kept) < len(objects)
            self._changed = self._changed or kept != self._objects
            self._objects = kept
            self._confirm()

    def put(self, key: str, found: T | None) -> None:
        """Store what is known of one object now, or forget it where that is None."""
        with self._lock:
            if self._objects.get(key) != found:
                self._changed = True
                if found is None:
                    del self._objects[key]
                elif key in self._objects or len(self._objects) < self._most:
                    self._objects[key] = found
                else:
                    self._full = True
            self._confirm()

    def confirm(self) -> None:
        """Note that the API server answered and that the objects are still current."""
        with self._lock:
            self._confirm()

    def failed(self, reason: ApiReason, message: str) -> None:
        """Note a failure, which is the problem until the next confirmation."""
        with self._lock:
            self._problem = reason, message

    def count_malformed(self) -> None:
        """Count an object that cannot be decoded."""
        with self._lock:
            self._malformed += 1

    def view(self, keep_seconds: float) -> ReflectorView[T]:
        """What is known now: the objects only if they were confirmed in the last `keep_seconds`."""
        with self._lock:
            if self._changed:
                self._sorted = tuple(self._objects[key] for key in sorted(self._objects))
                self._changed = False
            age = None if self._confirmed_at is None else self._clock() - self._confirmed_at
            kept = age is not None and age <= keep_seconds
            return ReflectorView(
                self._sorted if kept else None, self._synced_at, age, self._malformed, self._problem or self._excess()
            )

    def _excess(self) -> tuple[ApiReason, str] | None:
        return (ApiReason.TOO_MANY_OBJECTS, f"more than {self._most} objects") if self._full else None

    def _confirm(self) -> None:
        self._confirmed_at, self._synced_at, self._problem = self._clock(), self._wall(), None
