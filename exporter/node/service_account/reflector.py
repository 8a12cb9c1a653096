"""A reflector of the node exporter: a thread that keeps the objects of one kind current, by a list and then watches.

The first list is the one that the API server has in memory, so that the exporters of all nodes may start at once.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from exporter.api_objects.decode import UnreadableAnswerError, event, key_of, metadata, separated, status_of
from exporter.api_objects.wire import ListMeta, WatchEvent
from exporter.backoff import FIRST_PAUSE, Backoff
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.counted_decoding import CountedDecoding
from exporter.node.service_account.known_objects import KnownObjects
from exporter.node.service_account.reasons import ApiReason
from exporter.node.service_account.session import ApiRequestError, ApiSession, TooLargeError, request_error
from exporter.node.service_account.watched_kind import ReflectorView, WatchedKind

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
PAGE_OBJECTS, MAX_PAGE_BYTES = 100, 16 << 20
"""Of one page of a list; a page that is larger is asked for again with fewer objects."""
WATCH_SECONDS = 300.0
"""The longest time after which a watch ends and another one begins."""
_GRACE = 10.0
"""Seconds beyond its requested end for which a watch may be silent before its connection counts as dead."""
LONGEST_PAUSE = 60.0
"""All nodes of a cluster ask the same API server."""
_SHORTEST_WATCH = 1.0
_FAILURES_BEFORE_LIST = 3
"""After so many failures in a row objects are listed anew: the place from where to watch may be what is wrong."""
_STOP_SECONDS = 2.0


class NodeReflector(Generic[T]):
    """Keeps objects of one kind current until it is closed. `view` may be called from any thread."""

    def __init__(
        self,
        kind: WatchedKind[T],
        account: ServiceAccount,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`clock` is in seconds; `jitter` returns a random number from 0 to 1, other ones on other nodes."""
        self._kind, self._clock, self._jitter = kind, clock, jitter
        self._session = ApiSession(account)
        self._known: KnownObjects[T] = KnownObjects(kind.most, clock)
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._decoded = CountedDecoding(kind, self._known)
        self._version = 0
        """Which of the kind's paths is requested."""
        self._resource_version = ""
        """Where the next watch begins; empty when a list is due first."""
        self._list_from = {"resourceVersion": "0"}
        """Asks for what the API server has in memory; empty for what is stored, which may be newer."""
        self._opened_at: float | None = None
        """When a watch was accepted that is open and of which that is not noted yet."""
        self._failures = 0
        """How many attempts in a row have failed."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{kind.name}"[:15], daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def view(self, keep_seconds: float) -> ReflectorView[T]:
        """What is known now: the objects only if they were confirmed in the last `keep_seconds`."""
        opened_at = self._opened_at
        if opened_at is not None and self._clock() - opened_at >= _SHORTEST_WATCH:
            self._opened_at = None
            self._known.confirm()
        return self._known.view(keep_seconds)

    def close(self) -> None:
        """End the thread; bounded in time, a connection attempt may take longer."""
        self._stopping.set()
        self._session.interrupt()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._list_and_watch()
            except ApiRequestError as error:
                self._failed(error)
            except UnreadableAnswerError as error:
                self._failed(ApiRequestError(ApiReason.BAD_RESPONSE, str(error)))
            except Exception as error:  # noqa: BLE001 - the thread must not end
                if self._failures == 0:
                    _LOG.exception("the thread that reads %s met a defect and begins anew", self._kind.name)
                self._resource_version = ""
                self._failed(ApiRequestError(ApiReason.CRASHED, repr(error)))

    def _list_and_watch(self) -> None:
        if not self._resource_version:
            self._list()
        began = self._clock()
        self._watch()
        if self._clock() - began >= _SHORTEST_WATCH:
            self._known.confirm()
            self._succeeded()
        else:  # nothing was confirmed, and a server that ends every watch at once needs a pause
            self._stopping.wait(_SHORTEST_WATCH + self._jitter())

    def _list(self) -> None:
        """Request all objects, page by page, and replace what is known by them."""
        objects: dict[str, T] = {}
        query = {**self._kind.query, "limit": str(PAGE_OBJECTS)} | self._list_from
        while not self._stopping.is_set():
            meta = self._page(query, objects)
            if not meta.continue_:
                if not meta.resource_version:
                    raise UnreadableAnswerError(f"a list of {self._kind.name} has no resourceVersion")
                self._known.replace(objects)
                self._resource_version, self._list_from = meta.resource_version, {}
                return
            query = {**query, "continue": meta.continue_}
            query.pop("resourceVersion", None)  # the token has it

    def _page(self, query: dict[str, str], objects: dict[str, T]) -> ListMeta:
        """Add the objects of a page, and make its limit smaller in the query where it is too large."""
        while True:
            try:
                body = self._session.whole(self._path, query, MAX_PAGE_BYTES)
                break
            except TooLargeError:
                if query["limit"] == "1":
                    raise
                query["limit"] = str(max(1, int(query["limit"]) // 4))
                query.pop("resourceVersion", None)  # from its memory an API server gives everything at once
        page = separated(body)
        for text in page.items or ():
            key, found = self._decoded(text)
            if found is not None and len(objects) <= self._kind.most:
                objects[key] = found
        return page.metadata

    def _watch(self) -> None:
        """Apply changes until the API server ends the watch after the time it was asked for."""
        seconds = WATCH_SECONDS * (2 + self._jitter()) / 3
        query = {
            **self._kind.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(int(seconds)),
        }
        with self._session.lines(self._path, query, seconds + _GRACE) as lines:
            # An expired version is answered with a watch that at once says so: an open one is no success yet.
            self._opened_at = self._clock()
            try:
                for line in lines:
                    self._apply(event(line))
                    self._succeeded()
            finally:
                self._opened_at = None

    def _apply(self, found: WatchEvent) -> None:
        if found.type == "ERROR":
            status = status_of(found.object)
            raise request_error(status.code, status.message or status.reason)
        meta = metadata(found.object)
        if found.type == "BOOKMARK":
            self._known.confirm()
        elif found.type == "DELETED":
            self._known.put(key_of(meta), None)
        else:
            # An object that cannot be decoded any more is not known: its last one is dropped too.
            self._known.put(*self._decoded(found.object))
        self._resource_version = meta.resource_version or self._resource_version

    @property
    def _path(self) -> str:
        return self._kind.paths[self._version]

    def _succeeded(self) -> None:
        """Note that a watch works. A list alone is no success: a node that may not watch would list all the time."""
        self._failures = 0
        self._backoff.reset()

    def _failed(self, error: ApiRequestError) -> None:
        """Note the failure, decide how to continue, and wait before the next attempt."""
        if self._stopping.is_set():
            return
        if error.reason is ApiReason.NOT_SERVED and self._version + 1 < len(self._kind.paths):
            self._version += 1
            self._resource_version = ""
            return
        self._failures += 1
        expired = error.reason is ApiReason.EXPIRED
        if expired or self._failures % _FAILURES_BEFORE_LIST == 0:
            self._resource_version = ""
        if error.reason is ApiReason.NOT_SERVED:
            self._version, self._resource_version = 0, ""
        if expired and self._failures == 1:
            return  # nothing is wrong with the API server: the objects are listed at once
        self._known.failed(error.reason, f"{self._kind.name} cannot be read: {error}")
        self._stopping.wait(error.retry_after + self._backoff.failed() * (0.5 + self._jitter() / 2))
