"""Keeps the lease, in a thread of its own.

It reads the lease, takes it when its leader does not renew it, renews it while this replica leads, and releases it.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from exporter.backoff import FIRST_PAUSE, Backoff
from exporter.cluster.config import LeaseName
from exporter.cluster.kubernetes.watching.api import ApiError, KubernetesApi
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.leadership import lease
from exporter.cluster.leadership.election import CHECK_SECONDS, LEASE_SECONDS, RENEW_SECONDS, Election
from exporter.cluster.leadership.reasons import LeaseReason

_LOG = logging.getLogger(__name__)
_STOP_SECONDS = 5.0
_SHORTEST_PAUSE = 0.1
_WRITES = 2
"""How often one attempt writes, at most: once more after it has read what another client wrote in between."""
_REASONS: dict[str, LeaseReason] = {
    WatchReason.FORBIDDEN: LeaseReason.FORBIDDEN,
    WatchReason.NOT_SERVED: LeaseReason.NAMESPACE_MISSING,
}


class Problem(NamedTuple):
    """Why the last attempt failed."""

    reason: LeaseReason
    message: str


_UNREAD = Problem(LeaseReason.CONNECTING, "the lease has not been read yet")


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What the rest of the watcher sees of the lease."""

    leads: bool = False
    answered: bool = False
    """Whether the lease, or that there is none, was ever read."""
    problem: Problem | None = _UNREAD
    seconds: float = 0.0
    """How long the last attempt took."""

    def unready(self) -> str | None:
        """One message while this replica neither leads nor could take over, else None."""
        if self.leads:
            return None
        if self.problem is not None and self.problem.reason in _REASONS.values():
            return f"this replica can neither lead nor take over: {self.problem.reason.meaning}"
        return None if self.answered else _UNREAD.message


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a keeper needs from outside."""

    connect: Callable[[], KubernetesApi]
    """Raises ApiError when no configuration is usable."""
    ready: Callable[[], bool]
    """Whether this replica has the objects of the cluster. Called from the keeper's thread."""
    changed: Callable[[], None]
    """Called from the keeper's thread when this replica has begun or ceased to lead."""
    wall: Callable[[], float]
    """Seconds since the epoch."""
    clock: Callable[[], float]
    """Seconds from an arbitrary start; must be monotonic."""
    jitter: Callable[[], float]
    """Returns a random number from 0 to 1."""


class LeaseKeeper:
    """Takes part in the election of one lease until stopped. Other threads only read `view`."""

    def __init__(self, name: LeaseName, identity: str, surroundings: Surroundings) -> None:
        """`identity` must differ from that of every other replica, and of every earlier process of this one."""
        self._name, self._around = name, surroundings
        self._election = Election(identity)
        self._lease: lease.StoredLease | None = None
        self._api: KubernetesApi | None = None
        self._backoff = Backoff(FIRST_PAUSE, RENEW_SECONDS)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.view = LeaseView()

    def start(self) -> None:
        """Start the thread; returns at once, whether or not there is an API server."""
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
        self._thread.start()

    def supervise(self) -> None:
        """Start the thread again if it has ended because of a defect."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopping.is_set():
            self._publish(Problem(LeaseReason.CRASHED, "the thread of the lease ended because of a defect"), 0.0)
            self.start()

    def interrupt(self) -> None:
        """Ask the thread to end; it releases the lease if this replica leads."""
        self._stopping.set()

    def join(self) -> None:
        """Wait a few seconds for the thread, a daemon, to end."""
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self.attempt())
        self.release()
        self._disconnect()

    def attempt(self) -> float:
        """Read and write the lease where that is due, and publish the result.

        Returns how long to wait before the next attempt, in seconds. The thread does nothing else.
        """
        began = self._around.clock()
        try:
            self._take_part()
        except ApiError as error:
            return self._failed(error, self._around.clock() - began)
        self._backoff.reset()
        self._publish(None, self._around.clock() - began)
        if self._election.leads:
            return self._jittered(RENEW_SECONDS)
        return min(self._jittered(CHECK_SECONDS), max(self._left(), _SHORTEST_PAUSE))

    def _left(self) -> float:
        """How many seconds the lease must still stay unchanged until this replica writes it."""
        return self._election.wait(ready=self._election.leads or self._around.ready())

    def _jittered(self, seconds: float) -> float:
        return seconds * (0.8 + self._around.jitter() / 5)

    def _take_part(self) -> None:
        """Read the lease unless this replica leads, and write it where that is due. Raises ApiError."""
        api = self._api = self._api or self._around.connect()
        if not self._election.leads:
            self._read(api)
        for _ in range(_WRITES):
            if self._left() > 0.0 or self._write(api):
                return
            self._read(api)

    def _read(self, api: KubernetesApi) -> None:
        self._take(lease.get(api, self._name))

    def _write(self, api: KubernetesApi) -> bool:
        """Write this replica into the lease. Returns False when another client has written it meanwhile."""
        written = lease.write(api, self._name, self._lease, self._election.identity, self._around.wall())
        if written is not None:
            self._take(written)
        return written is not None

    def _take(self, found: lease.StoredLease | None) -> None:
        self._lease = found
        self._election = self._election.after_read(None if found is None else found.term, self._around.clock())

    def _failed(self, error: ApiError, took: float) -> float:
        """Publish the failure. Returns how long to wait before the next attempt, in seconds."""
        self._election = self._election.after_failure()
        self._publish(Problem(_REASONS.get(error.reason, LeaseReason.UNAVAILABLE), f"{self._label}: {error}"), took)
        if error.reason == WatchReason.UNAUTHORIZED:
            self._disconnect()  # the next attempt reads the credentials again
        asked = min(error.retry_after or 0.0, LEASE_SECONDS)
        return asked + self._backoff.failed() * (0.5 + self._around.jitter() / 2)

    def _publish(self, problem: Problem | None, took: float) -> None:
        before, now = self.view, LeaseView(self._election.leads, self._election.answered, problem, took)
        self.view = now
        if before.leads == now.leads:
            return
        if now.leads:
            _LOG.info("this replica leads: it has taken %s", self._label)
        else:
            _LOG.info("this replica does not lead any more: another one has taken %s", self._label)
        self._around.changed()

    @property
    def _label(self) -> str:
        return f"lease {self._name.namespace}/{self._name.name}"

    def release(self) -> None:
        """Write that nobody leads, so that another replica need not wait until the lease is old."""
        api, found = self._api, self._lease
        if self._election.leads and api is not None and found is not None:
            with suppress(ApiError):
                lease.write(api, self._name, found, "", self._around.wall())

    def _disconnect(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            with suppress(OSError):
                api.close()
