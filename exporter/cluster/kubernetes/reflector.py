"""One thread that keeps one kind of object current: list once, then watch from there for ever."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.api import Api, ApiError
from exporter.cluster.kubernetes.decode import Change, ObjectKind
from exporter.cluster.kubernetes.records import Record
from exporter.cluster.kubernetes.store import Table

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_GRACE = 10.0
"""Seconds beyond its end for which a watch may be silent before its connection counts as dead."""
_SHORTEST_WATCH = 1.0
_STOP_SECONDS = 5.0
_MOST_NAMED = 1000


class KindWatch:
    """Keeps a table current until stopped. The thread ends by itself only through a defect."""

    def __init__(
        self,
        kind: ObjectKind,
        table: Table,
        connect: Callable[[], Api],
        config: ClusterConfig,
        jitter: Callable[[], float],
    ) -> None:
        self._kind, self._table, self._connect, self._config = kind, table, connect, config
        self._jitter = jitter
        self._api: Api | None = None
        self._position = ""
        self._failures = 0
        self._said = ""
        self._named: set[str] = set()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._position = ""
        self._thread = threading.Thread(target=self._run, name=f"watch-{self._kind.name}", daemon=True)
        self._thread.start()

    def revive(self) -> None:
        """Starts the thread again if it has died, which takes a defect."""
        if self._thread is not None and not self._thread.is_alive() and not self._ending.is_set():
            self._table.failed("crashed", f"the watch of {self._kind.name} died and was started again")
            self.start()

    def interrupt(self) -> None:
        """Asks the thread to end."""
        self._ending.set()
        api = self._api
        if api is not None:
            api.interrupt()

    def join(self) -> None:
        """Waits for the end; a thread that sits in a connection attempt is left behind, as a daemon."""
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._go_on()
            except ApiError as error:
                if not self._ending.is_set():
                    self._failed(error)
        self._disconnect()

    def _go_on(self) -> None:
        api = self._api = self._api or self._connect()
        if not self._position:
            self._list(api)
        began = self._table.clock()
        self._watch(api)
        if self._table.clock() - began >= _SHORTEST_WATCH:
            self._table.contact()
        else:  # nothing was learnt, and a server that ends every watch at once is not asked in a tight loop
            self._ending.wait(_FIRST_PAUSE + self._jitter())

    def _list(self, api: Api) -> None:
        """Everything there is, page by page, all of one moment."""
        began = self._table.clock()
        records: dict[str, Record] = {}
        query = {**self._kind.query, "limit": str(self._config.page)}
        while not self._ending.is_set():
            page = self._kind.codec.page(api.page(self._kind.path, query))
            records.update(page.records)
            self._malformed(page.bad)
            if not page.token:
                if not page.resource_version:
                    raise ApiError("bad_response", f"a list of {self._kind.name} has no resourceVersion")
                self._table.replace(records, self._table.clock() - began)
                self._position = page.resource_version
                return
            query["continue"] = page.token

    def _watch(self, api: Api) -> None:
        """What changes, until the server ends the watch, as it was asked to."""
        seconds = self._config.watch_seconds * (2 + self._jitter()) / 3
        query = {
            **self._kind.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._position,
            "timeoutSeconds": str(max(1, int(seconds))),
        }
        with api.lines(self._kind.path, query, seconds + _GRACE) as lines:
            if self._ending.is_set():
                return
            self._recovered()
            for line in lines:
                self._apply(self._kind.codec.change(line))
                self._failures = 0
        self._failures = 0

    def _apply(self, change: Change) -> None:
        if change.what == "bookmark":
            self._table.contact()
        else:
            # An object that cannot be read any more is not shown as it was before.
            self._table.put(change.key, change.record)
        if change.problem:
            self._malformed([change.problem])
        self._position = change.resource_version or self._position

    def _malformed(self, problems: list[str]) -> None:
        """Counts each time; names each object once, and at most so many."""
        self._table.count_malformed(len(problems))
        for problem in problems:
            if problem not in self._named and len(self._named) < _MOST_NAMED:
                self._named.add(problem)
                _LOG.warning("one of the %s cannot be read and is left out: %s", self._kind.name, problem)

    def _recovered(self) -> None:
        self._table.answered()
        if self._said:
            _LOG.info("%s are watched again", self._kind.name)
        self._said = ""

    def _failed(self, error: ApiError) -> None:
        """Remembers what happened, says so when it is new, and waits before the next attempt."""
        self._table.failed(error.reason, str(error))
        if error.reason == "expired" or self._table.view(self._config.stale_after).records is None:
            self._position = ""  # what is known can no longer be brought up to date
        if error.reason == "unauthorized":
            self._disconnect()  # the next attempt reads the credentials afresh
        if error.reason != self._said:
            _LOG.warning("%s cannot be watched: %s", self._kind.name, error)
        self._said = error.reason
        self._failures += 1
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failures, 10))
        self._ending.wait((error.retry_after or 0.0) + longest * (0.5 + self._jitter() / 2))

    def _disconnect(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            with suppress(OSError):
                api.close()
