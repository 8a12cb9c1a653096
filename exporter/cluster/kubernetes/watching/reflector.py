"""A reflector: a thread that keeps the store of one kind of object, such as pods, current.

It lists all objects once, then watches: it applies every change that the API server reports after that list. Objects
of an optional kind that may not be read, or that the API server does not serve, are asked for again now and then.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.objects.records import ClusterObject
from exporter.cluster.kubernetes.watching.api import ApiError, KubernetesApi
from exporter.cluster.kubernetes.watching.decode import WatchChange
from exporter.cluster.kubernetes.watching.kinds import ObjectKind
from exporter.cluster.kubernetes.watching.listing import pages
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.cluster.kubernetes.watching.store import ObjectStore
from exporter.log import OnceLog, StateLog

_LOG = logging.getLogger(__name__)
_PAUSE_AFTER_SHORT_WATCH = 0.5
_SHORTEST_WATCH = 1.0
"""Seconds that a watch must last to count as a confirmation, when it ends without an error."""
_GRACE = 10.0
"""Seconds beyond its requested end for which a watch may be silent before its connection counts as dead."""
_STOP_SECONDS = 5.0
_OFF = (WatchReason.FORBIDDEN, WatchReason.NOT_SERVED)
"""Why an optional kind is not read, and not for want of health."""
_NOT_SERVED_SECONDS = 60.0
"""How long to wait before a kind that is not served is asked for again: CRDs are installed once."""


class Reflector:
    """Keeps a store current until stopped. The thread ends by itself only because of a defect."""

    def __init__(
        self,
        kind: ObjectKind,
        store: ObjectStore,
        connect: Callable[[], KubernetesApi],
        config: ClusterConfig,
        jitter: Callable[[], float],
    ) -> None:
        """`connect` raises ApiError when no configuration is usable; `jitter` returns a random number from 0 to 1."""
        self._kind, self._store, self._connect, self._config = kind, store, connect, config
        self._jitter = jitter
        self._api: KubernetesApi | None = None
        self._version = 0
        """Which of the kind's paths is requested."""
        self._expired = False
        """Whether the last attempt found its resource version expired, with no answer since."""
        self._opened_at: float | None = None
        """When a watch was accepted that is still open; None while there is none."""
        self._resource_version = ""
        """Where the next watch begins; empty when a list is due first."""
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._states = StateLog(_LOG)
        self._malformed_log = OnceLog(_LOG)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._resource_version = ""
        self._thread = threading.Thread(target=self._run, name=f"reflector-{self._kind.name}", daemon=True)
        self._thread.start()

    def supervise(self) -> None:
        """Start the thread again if it has ended because of a defect, and notice a watch that stays open."""
        opened_at = self._opened_at
        if opened_at is not None and self._store.clock() - opened_at >= _SHORTEST_WATCH:
            self._recovered()
        if self._thread is not None and not self._thread.is_alive() and not self._stopping.is_set():
            message = f"the reflector of {self._kind.name} ended because of a defect and was restarted"
            self._store.failed(WatchReason.CRASHED, message)
            self.start()

    def interrupt(self) -> None:
        """Ask the thread to end; a watch in progress ends at once."""
        self._stopping.set()
        api = self._api
        if api is not None:
            api.interrupt()

    def join(self) -> None:
        """Wait a few seconds for the thread, a daemon, to end; a connection attempt may take longer."""
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._list_and_watch()
            except ApiError as error:
                if not self._stopping.is_set():
                    self._failed(error)
        self._disconnect()

    def _list_and_watch(self) -> None:
        """List if that is due, then watch once."""
        api = self._api = self._api or self._connect()
        if not self._resource_version:
            self._list(api)
        began = self._store.clock()
        self._watch(api)
        if self._store.clock() - began >= _SHORTEST_WATCH:
            self._store.confirm()
        else:  # nothing was confirmed, and a server that ends every watch at once needs a pause
            self._stopping.wait(_PAUSE_AFTER_SHORT_WATCH + self._jitter())

    def _list(self, api: KubernetesApi) -> None:
        """Request all objects and replace what is known by them."""
        began = self._store.clock()
        records: dict[str, ClusterObject] = {}
        for page in pages(api, self._kind, self._path, self._config.page_size):
            if self._stopping.is_set():
                return
            records.update(page.records)
            self._count_malformed(page.malformed)
            if not page.continue_token:
                self._store.replace(records, self._store.clock() - began)
                self._resource_version = page.resource_version

    def _watch(self, api: KubernetesApi) -> None:
        """Apply changes until the API server ends the watch after the time it was asked for."""
        seconds = self._config.watch_seconds * (2 + self._jitter()) / 3
        query = {
            **self._kind.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        with api.lines(self._path, query, seconds + _GRACE) as lines:
            if self._stopping.is_set():
                return
            # An expired version is answered with a watch that at once says so: an open one is no success yet.
            self._opened_at = self._store.clock()
            try:
                for line in lines:
                    self._apply(self._kind.codec.change(line))
                    self._recovered()
                    self._backoff.reset()
            finally:
                self._opened_at = None
        self._recovered()
        self._backoff.reset()

    def _apply(self, change: WatchChange) -> None:
        if change.type == "bookmark":
            self._store.confirm()
        else:
            # An object that cannot be read any more has no record: its last one is dropped too.
            self._store.put(change.key, change.record)
        if change.problem:
            self._count_malformed([change.problem])
        self._resource_version = change.resource_version or self._resource_version

    def _count_malformed(self, problems: list[str]) -> None:
        """Count every problem and log each distinct one once."""
        self._store.count_malformed(len(problems))
        for problem in problems:
            self._malformed_log.warning(f"one of the {self._kind.name} cannot be read and is left out: {problem}")

    @property
    def _path(self) -> str:
        return self._kind.paths[self._version]

    def _recovered(self) -> None:
        self._expired = False
        self._store.clear_problem()
        self._states.clear(self._kind.name, f"{self._kind.name} are watched again")

    def _failed(self, error: ApiError) -> None:
        """Record and log the failure, decide how to continue, and wait before the next attempt."""
        if error.reason == WatchReason.NOT_SERVED and self._version + 1 < len(self._kind.paths):
            self._version += 1
            return
        self._version = 0 if error.reason == WatchReason.NOT_SERVED else self._version
        self._record(error)
        expired = error.reason == WatchReason.EXPIRED
        if expired or self._store.view(self._config.stale_after).records is None:
            self._resource_version = ""  # the records cannot be brought up to date by a watch any more
        if error.reason == WatchReason.UNAUTHORIZED:
            self._disconnect()  # the next attempt reads the credentials again
        if expired and not self._expired:
            # Nothing is wrong with the API server: the objects are listed at once, whatever happened before.
            self._expired = True
            return
        not_served = self._kind.optional and error.reason == WatchReason.NOT_SERVED
        pause = _NOT_SERVED_SECONDS if not_served else self._backoff.failed()
        self._stopping.wait((error.retry_after or 0.0) + pause * (0.5 + self._jitter() / 2))

    def _record(self, error: ApiError) -> None:
        """Count and log a failure, or note that an optional kind is not read."""
        if self._kind.optional and error.reason in _OFF:
            self._store.switch_off(error.reason)
            message = f"{self._kind.name} are optional and not read: {error}"
            self._states.report(self._kind.name, message, state=error.reason, level=logging.INFO)
            return
        self._store.failed(error.reason, str(error))
        message = f"{self._kind.name} cannot be watched: {error}"
        self._states.report(self._kind.name, message, state=error.reason)

    def _disconnect(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            with suppress(OSError):
                api.close()
