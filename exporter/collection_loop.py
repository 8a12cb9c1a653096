"""The thread that keeps the page fresh: one pass after another, on a timer, whether anybody scrapes or not."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from exporter.exposition.exporter_metrics import SelfMetrics
from exporter.exposition.render import Page, render
from exporter.snapshot import Snapshot

logger = logging.getLogger(__name__)

EAGER_PASSES = 3
EAGER_SECONDS = 1.0
RETRY_SECONDS = 2.0
STALLED_PASSES = 3
"""A pass is bounded by its sources' deadlines; after this many intervals without one the thread is stuck."""
GRACE_SECONDS = 60.0
FOLLOWS_A_CRASH = "restarting"
"""The reason between a reader's end, which was said, and its next start."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between passes: quick ones at the start and while a source is down, then the interval."""

    interval: float

    def wait(self, passes: int, *, healthy: bool) -> float:
        """Seconds until the next pass, after `passes` so far."""
        if passes < EAGER_PASSES:
            return min(self.interval, EAGER_SECONDS)
        return self.interval if healthy else min(self.interval, RETRY_SECONDS)


@dataclass(slots=True)
class HealthLog:
    """One line when a source goes down, changes its reason, or comes back; nothing while it stays as it is."""

    _said: dict[str, str] = field(default_factory=dict)

    def report(self, snapshot: Snapshot) -> None:
        """Compare with what was said before."""
        now = {health.source: (health.reason, health.message) for health in snapshot.health if not health.up}
        now |= {f"{p.source} {p.reason}": (p.reason, p.sentence) for p in snapshot.problems}
        for subject, (reason, message) in now.items():
            if reason != FOLLOWS_A_CRASH and self._said.get(subject) != reason:
                logger.warning("%s: %s", subject, message)
                self._said[subject] = reason
        for subject in self._said.keys() - now.keys():
            logger.info("%s: well again", subject)
            del self._said[subject]


class Sampler:
    """Takes snapshots and renders them. `page` is the only thing other threads read."""

    def __init__(
        self,
        take: Callable[[], Snapshot],
        own: SelfMetrics,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take = take
        self._own = own
        self._registry = own.registry()
        self._pace = Pace(interval)
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._last_pass = clock()
        self._passes = 0
        self._health_log = HealthLog()
        self.page: Page = render((), self._registry)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Ask the thread to end and wait at most `timeout` seconds: a pass in flight may be stuck in a source."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    @property
    def passes(self) -> int:
        """Passes finished since the start."""
        return self._passes

    def stalled(self) -> str | None:
        """One sentence when no pass has ended for too long, else None."""
        age = self._clock() - self._last_pass
        limit = STALLED_PASSES * self._pace.interval + GRACE_SECONDS
        return f"no pass has ended for {age:.0f} s" if age > limit else None

    def sample(self) -> Snapshot | None:
        """One pass: take, render, publish. A defect of ours costs the data of this pass, never the page."""
        snapshot = None
        try:
            snapshot = self._take()
            self._own.observe(snapshot)
            self._health_log.report(snapshot)
            page = render(snapshot.families, self._registry)
        except Exception:
            logger.exception("a pass failed; this is a defect")
            snapshot = self._own.snapshot = None
            self._own.passes_failed += 1
            page = render((), self._registry)
        self.page = page
        self._own.dropped += self.page.dropped
        self._last_pass = self._clock()
        self._passes += 1
        return snapshot

    def _run(self) -> None:
        while not self._stopping.is_set():
            snapshot = self.sample()
            healthy = snapshot is not None and all(health.up for health in snapshot.health)
            self._stopping.wait(self._pace.wait(self._passes, healthy=healthy))
