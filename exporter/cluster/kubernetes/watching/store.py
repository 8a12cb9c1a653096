"""The store of one kind of object, such as pods: written by its reflector, read by collections."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from exporter.cluster.kubernetes.objects.records import ClusterObject, Pod
from exporter.cluster.kubernetes.pods.schedulable_since import with_since


@dataclass(frozen=True, slots=True)
class StoreView:
    """A store at one moment."""

    object: str
    """The kind, as the API names it: `pods`."""
    records: tuple[ClusterObject, ...] | None
    """None before the first list, and while the API server has not confirmed the records for too long."""
    synced_at: float | None
    """When the API server last confirmed the records, in seconds since the epoch; None before the first list."""
    restarts: Mapping[str, int]
    """How often a list or a watch failed, by reason."""
    malformed: int
    """Objects that could not be read."""
    list_seconds: float
    """How long the last complete list took."""
    problem: tuple[str, str] | None
    """(reason, message) of the last attempt, if it failed."""
    optional: bool = False
    """Whether everything else works without these objects."""
    off: str = ""
    """Why optional objects are not read; empty while they are, or may be."""


@dataclass(slots=True)
class ObjectStore:
    """The records of one kind of object. Every method may be called from any thread."""

    object: str
    """The kind, as the API names it: `pods`."""
    wall: Callable[[], float]
    """Seconds since the epoch."""
    clock: Callable[[], float]
    """Seconds from an arbitrary start; must be monotonic."""
    optional: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _records: dict[str, ClusterObject] = field(default_factory=dict)
    _viewed: tuple[ClusterObject, ...] | None = None
    """What the last view was made of, shared by all views until a record changes."""
    _confirmed_at: float | None = None
    _synced_at: float | None = None
    _restarts: Counter[str] = field(default_factory=Counter)
    _malformed: int = 0
    _list_seconds: float = 0.0
    _problem: tuple[str, str] | None = None
    _off: str = ""

    def replace(self, records: Mapping[str, ClusterObject], seconds: float) -> None:
        """Replace all records by those of a complete list, which took `seconds`."""
        with self._lock:
            now = self.wall()
            self._records = {key: self._with_since(key, record, now) for key, record in records.items()}
            self._viewed = None
            self._list_seconds = seconds
            self._confirm()

    def put(self, key: str, record: ClusterObject | None) -> None:
        """Store the current record of one object, or drop it when `record` is None."""
        with self._lock:
            if record is not None:
                record = self._with_since(key, record, self.wall())
            if self._records.get(key) != record:
                self._viewed = None
                self._set(key, record)
            self._confirm()

    def confirm(self) -> None:
        """Record that the API server answered and that the records are still current."""
        with self._lock:
            self._confirm()

    def clear_problem(self) -> None:
        """Record that the API server accepted a request. The records may still be out of date."""
        with self._lock:
            self._problem = None

    def failed(self, reason: str, message: str) -> None:
        """Count a failed list or watch; the views show it as their problem until the next success."""
        with self._lock:
            self._restarts[reason] += 1
            self._problem = (reason, message)

    def switch_off(self, reason: str) -> None:
        """Record that optional objects may not or cannot be read: nothing is known of them, and nothing is wrong."""
        with self._lock:
            self._records, self._viewed, self._problem = {}, None, None
            self._confirmed_at = self._synced_at = None
            self._off = reason

    def count_malformed(self, count: int) -> None:
        """Count objects that could not be read."""
        with self._lock:
            self._malformed += count

    def view(self, stale_after: float) -> StoreView:
        """Return the store as it is now, with records only if they were confirmed in the last `stale_after` seconds."""
        with self._lock:
            fresh = self._confirmed_at is not None and self.clock() - self._confirmed_at <= stale_after
            if fresh and self._viewed is None:
                self._viewed = tuple(self._records.values())
            return StoreView(
                self.object,
                self._viewed if fresh else None,
                self._synced_at,
                dict(self._restarts),
                self._malformed,
                self._list_seconds,
                self._problem,
                self.optional,
                self._off,
            )

    def _with_since(self, key: str, record: ClusterObject, now: float) -> ClusterObject:
        if not isinstance(record, Pod):
            return record
        before = self._records.get(key)
        return with_since(record, before if isinstance(before, Pod) else None, now)

    def _set(self, key: str, record: ClusterObject | None) -> None:
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record

    def _confirm(self) -> None:
        self._confirmed_at, self._synced_at, self._problem, self._off = self.clock(), self.wall(), None, ""
