"""What is known of one kind of object, written by its watch and read by passes."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from exporter.cluster.kubernetes.records import Pod, Record
from exporter.cluster.kubernetes.schedulable_since import with_since


@dataclass(frozen=True, slots=True)
class TableView:
    """A table as of one moment. `records` is None while nothing current is known."""

    object: str
    records: tuple[Record, ...] | None
    synced_at: float | None
    """When the API server last confirmed that this is the truth, seconds since the epoch."""
    restarts: Mapping[str, int]
    malformed: int
    list_seconds: float
    problem: tuple[str, str] | None
    """(reason, sentence) of the last attempt, if it failed."""


@dataclass(slots=True)
class Table:
    """The records of one kind. Every method may be called from any thread."""

    object: str
    wall: Callable[[], float]
    clock: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _records: dict[str, Record] = field(default_factory=dict)
    _taken: tuple[Record, ...] | None = None
    _contact: float | None = None
    _synced_at: float | None = None
    _restarts: Counter[str] = field(default_factory=Counter)
    _malformed: int = 0
    _list_seconds: float = 0.0
    _problem: tuple[str, str] | None = None

    def replace(self, records: Mapping[str, Record], seconds: float) -> None:
        """A complete list, which took so many seconds, takes the place of everything known."""
        with self._lock:
            now = self.wall()
            self._records = {key: self._merged(key, record, now) for key, record in records.items()}
            self._taken = None
            self._list_seconds = seconds
            self._touch()

    def put(self, key: str, record: Record | None) -> None:
        """One object as it is now; None when it is gone or no longer of interest."""
        with self._lock:
            if record is not None:
                record = self._merged(key, record, self.wall())
            if self._records.get(key) != record:
                self._taken = None
                self._store(key, record)
            self._touch()

    def contact(self) -> None:
        """The API server answered and what is known is still the truth."""
        with self._lock:
            self._touch()

    def answered(self) -> None:
        """The API server took a request; what is known may still lag behind."""
        with self._lock:
            self._problem = None

    def failed(self, reason: str, message: str) -> None:
        with self._lock:
            self._restarts[reason] += 1
            self._problem = (reason, message)

    def count_malformed(self, count: int) -> None:
        with self._lock:
            self._malformed += count

    def view(self, stale_after: float) -> TableView:
        """What may be shown; records only when the last contact was at most `stale_after` seconds ago."""
        with self._lock:
            fresh = self._contact is not None and self.clock() - self._contact <= stale_after
            if fresh and self._taken is None:
                self._taken = tuple(self._records.values())
            return TableView(
                self.object,
                self._taken if fresh else None,
                self._synced_at,
                dict(self._restarts),
                self._malformed,
                self._list_seconds,
                self._problem,
            )

    def _merged(self, key: str, record: Record, now: float) -> Record:
        if not isinstance(record, Pod):
            return record
        before = self._records.get(key)
        return with_since(record, before if isinstance(before, Pod) else None, now)

    def _store(self, key: str, record: Record | None) -> None:
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record

    def _touch(self) -> None:
        self._contact, self._synced_at, self._problem = self.clock(), self.wall(), None
