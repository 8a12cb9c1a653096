"""The collection loop: a thread that collects (reads every source) and renders the result on a timer.

A scrape gets the last result, the exposition; scraping often or never changes nothing here.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.exposition.exposition import Demand, Exposition
from exporter.exposition.kept_pieces import KeptPieces
from exporter.exposition.render import render
from exporter.log import StateLog
from exporter.snapshot import Snapshot

logger = logging.getLogger(__name__)

FIRST_COLLECTIONS = 3
FIRST_SECONDS = 1.0
RETRY_SECONDS = 2.0
STALLED_INTERVALS = 3
"""A collection is bounded by its sources' deadlines; after this many intervals without one the thread is stuck."""
STALLED_GRACE_SECONDS = 60.0
LATE_INTERVALS = 3
LATE_MIN_SECONDS = 30.0
"""At short intervals: longer than a collection in which each source takes its whole deadline."""
FOLLOWS_A_CRASH = "restarting"
"""The reason after a crash, until the next reader process starts: not logged, because the crash was.

It is `ReaderReason.RESTARTING`, which belongs to the node exporter; a test compares the two.
"""


@dataclass(frozen=True, slots=True)
class CollectionPace:
    """Seconds between collections: short at the start and while a snapshot asks for it, otherwise the interval."""

    interval: float

    def wait(self, collections: int, *, retry_soon: bool) -> float:
        """Seconds until the next collection, after this many so far."""
        if collections < FIRST_COLLECTIONS:
            return min(self.interval, FIRST_SECONDS)
        return min(self.interval, RETRY_SECONDS) if retry_soon else self.interval


def log_health(states: StateLog, snapshot: Snapshot) -> None:
    """Log what is wrong with each source once: when it begins, and when the source has recovered.

    A source that could not be read shows nothing of the problems inside it: they neither end nor begin.
    """
    now = {_report(states, h.source, h.reason, h.source, h.message) for h in snapshot.health if not h.up}
    now |= {_report(states, p.source, p.reason, f"{p.source} {p.reason}", p.message) for p in snapshot.problems}
    up = {health.source for health in snapshot.health if health.up}
    for key in sorted(states.keys() - now):
        if key.partition(" ")[0] in up:
            states.clear(key, f"{key}: recovered")


def _report(states: StateLog, source: str, reason: str, subject: str, message: str) -> str:
    """Report one reason and return its key: the source, or source and reason of a problem while readings arrive.

    The same reason (`slow`) may leave one collection without readings and come with those of the next: it is one state.
    """
    if reason == FOLLOWS_A_CRASH:
        return subject
    keys = (source, f"{source} {reason}")
    key = next((key for key in keys if states.reported(key, reason)), subject)
    states.report(key, f"{subject}: {message}", state=reason)
    return key


def _overdue(age: float) -> str:
    return f"no collection has ended for {age:.0f} s"


@dataclass(frozen=True, slots=True)
class Collected:
    """What the last collection left. It is published as a whole, so that its parts belong together."""

    number: int
    """How many collections there were; 0 before the first."""
    exposition: Exposition
    snapshot: Snapshot | None = None
    """None before the first collection and after one that failed."""
    config: ConfigState | None = None
    """The state of the counters file; None in a program without one."""


class CollectionLoop:
    """Collects and renders in a thread of its own. `newest` is the only thing that other threads read.

    Expositions note which forms are asked for, and each collection makes those; the note is kept in a `Demand`.
    """

    def __init__(
        self,
        collect: Callable[[], Snapshot],
        exporter_metrics: ExporterMetrics,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`collect` makes one collection; `interval` is in seconds."""
        self._collect = collect
        self._exporter_metrics = exporter_metrics
        self._registry = exporter_metrics.registry()
        self._demand, self._kept = Demand(clock), KeptPieces()
        self._pace = CollectionPace(interval)
        self._clock = clock
        self._stopping = threading.Event()
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collection-loop", daemon=True)
        self._last_collection = clock()
        self._collections = 0
        self._health_log = StateLog(logger)
        self.newest = self._collected(0, render((), self._registry, self._demand), None)

    @property
    def exposition(self) -> Exposition:
        """The exposition of the last collection; before the first one, only the exporter metrics."""
        return self.newest.exposition

    def start(self) -> None:
        """Start the thread; its first collection begins at once."""
        self._thread.start()

    def collect_soon(self) -> None:
        """Begin the next collection now, or once the one in progress has ended. May be called from any thread."""
        self._due.set()

    def stop(self, timeout: float) -> None:
        """Ask the thread to end and wait at most `timeout` seconds: a source may hang in a collection.

        What a collection still in progress reads is neither published nor logged: its sources may be closed meanwhile.
        """
        self._stopping.set()
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def stalled(self) -> str | None:
        """One message when no collection has ended for too long, else None."""
        age = self._clock() - self._last_collection
        limit = STALLED_INTERVALS * self._pace.interval + STALLED_GRACE_SECONDS
        return _overdue(age) if age > limit else None

    def late(self) -> str | None:
        """One message when no collection has ended in the last three intervals (at least 30 s), else None."""
        if not self._collections:
            return "the first collection has not ended yet"
        age = self._clock() - self._last_collection
        return _overdue(age) if age > max(LATE_INTERVALS * self._pace.interval, LATE_MIN_SECONDS) else None

    def collect(self) -> Snapshot | None:
        """Collect, render and publish once. After an unexpected exception this collection exposes no data.

        Returns None after such an exception, and when the loop was stopped meanwhile.
        """
        snapshot = None
        try:
            snapshot = self._collect()
            if self._stopping.is_set():
                return None
            self._exporter_metrics.observe(snapshot)
            log_health(self._health_log, snapshot)
            exposition = render(snapshot.families, self._registry, self._demand, self._kept)
        except Exception:
            if self._stopping.is_set():
                return None
            logger.exception("a collection failed because of a defect in gpugauge")
            snapshot = self._exporter_metrics.snapshot = None
            self._exporter_metrics.collection_failures += 1
            exposition = render((), self._registry, self._demand)
        self.newest = self._collected(self._collections + 1, exposition, snapshot)
        self._exporter_metrics.dropped += exposition.dropped
        self._last_collection = self._clock()
        self._collections += 1
        return snapshot

    def _collected(self, number: int, exposition: Exposition, snapshot: Snapshot | None) -> Collected:
        config = self._exporter_metrics.config
        return Collected(number, exposition, snapshot, config() if config is not None else None)

    def _run(self) -> None:
        while True:
            self._due.clear()
            if self._stopping.is_set():  # asked after the clearing: `stop` sets this first
                return
            snapshot = self.collect()
            retry_soon = snapshot is not None and snapshot.retry_soon
            self._due.wait(self._pace.wait(self._collections, retry_soon=retry_soon))
