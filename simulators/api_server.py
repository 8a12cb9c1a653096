"""A small API server over plain HTTP, for the demonstration and for tests.

It holds pods, nodes and namespaces as plain dictionaries and speaks what a watcher needs: paged lists, watches with
bookmarks, resource versions that expire. It can be told to misbehave.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from simulators.api_server_http import KINDS, Fault, KindName, Object, Request, Server, error_line
from simulators.field_selector import matches

__all__ = ["Fault", "KindName", "Object", "Request", "SimulatedApiServer"]

_SINGULAR = {"pods": "Pod", "nodes": "Node", "namespaces": "Namespace"}
_MOST_LISTS = 100
_MOST_CHANGES = 100_000


@dataclass(frozen=True, slots=True)
class _Change:
    version: int
    kind: str
    before: Object | None
    after: Object | None
    raw: bytes = b""


class SimulatedApiServer:
    """Serves on a thread of its own between `start` and `stop`; every method may be called from any thread."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1", token: str = "", bookmark_seconds: float = 1.0) -> None:
        self._address, self._token, self._bookmark_seconds = (host, port), token, bookmark_seconds
        self._changed = threading.Condition()
        self._objects: dict[str, dict[tuple[str, str], Object]] = {kind: {} for kind in KINDS}
        self._changes: deque[_Change] = deque(maxlen=_MOST_CHANGES)
        self._version = 1
        self._oldest = 0
        self._epoch = 0
        self._lists: dict[str, tuple[int, list[Object]]] = {}
        self._faults: list[Fault] = []
        self._stopping = False
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self.requests: deque[Request] = deque(maxlen=10_000)
        """What was asked lately."""

    @property
    def url(self) -> str:
        return f"http://{self._address[0]}:{self._address[1]}"

    def start(self) -> None:
        """Binds the port and serves. Raises OSError when the port is taken; after `stop`, the same port again."""
        self._stopping = False
        self._server = Server(self._address, self)
        self._address = (self._address[0], self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends every connection and frees the port; objects and versions stay."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.hang_up()
            self._server.server_close()
            self._thread.join()
        self._server = None

    def put(self, kind: KindName, given: Object) -> None:
        """Adds an object, or replaces the one of the same namespace and name."""
        with self._changed:
            self._version += 1
            meta = {**given["metadata"], "resourceVersion": str(self._version)}
            key = (str(meta.get("namespace", "")), str(meta["name"]))
            after = {**given, "metadata": meta}
            self._note(_Change(self._version, kind, self._objects[kind].get(key), after))
            self._objects[kind][key] = after

    def delete(self, kind: KindName, name: str, namespace: str = "") -> None:
        """Raises KeyError when there is no such object."""
        with self._changed:
            self._version += 1
            before = self._objects[kind].pop((namespace, name))
            self._note(_Change(self._version, kind, before, None))

    def send(self, kind: KindName, line: bytes) -> None:
        """Sends a line of any content to the watches of a kind that are open now."""
        with self._changed:
            self._version += 1
            self._note(_Change(self._version, kind, None, None, line))

    def expire(self) -> None:
        """Forgets all history: older versions, running watches and half-read lists answer 410."""
        with self._changed:
            self._version += 1
            self._oldest = self._version
            self._lists.clear()
            self._changes.clear()
            self._changed.notify_all()

    def disconnect(self) -> None:
        """Drops every open watch without a word."""
        with self._changed:
            self._epoch += 1
            self._changed.notify_all()

    def misbehave(self, fault: Fault) -> None:
        with self._changed:
            self._faults.append(fault)

    def behave(self) -> None:
        """Forgets all faults."""
        with self._changed:
            self._faults.clear()

    def _note(self, change: _Change) -> None:
        self._changes.append(change)
        self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Waits so long, or until the server stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def allows(self, authorization: str) -> bool:
        return not self._token or authorization == f"Bearer {self._token}"

    def next_fault(self, on: str, kind: str) -> Fault | None:
        with self._changed:
            for index, fault in enumerate(self._faults):
                if fault.on == on and fault.kind in (None, kind):
                    left = replace(fault, times=fault.times - 1)
                    self._faults[index : index + 1] = [left] if left.times else []
                    return fault
        return None

    def page(self, kind: str, query: dict[str, str]) -> Object | None:
        """One page of a list; None when its continue token is not known any more."""
        with self._changed:
            token = query.get("continue")
            if token is None:
                selector = query.get("fieldSelector", "")
                items = [each for _, each in sorted(self._objects[kind].items()) if matches(each, selector)]
                version = self._version
            elif token in self._lists:
                version, items = self._lists.pop(token)
            else:
                return None
            limit = int(query.get("limit", "0")) or len(items)
            meta: Object = {"resourceVersion": str(version)}
            if len(items) > limit:
                meta["continue"] = self._keep(version, items[limit:])
                meta["remainingItemCount"] = len(items) - limit
        return {"kind": f"{_SINGULAR[kind]}List", "apiVersion": "v1", "metadata": meta, "items": items[:limit]}

    def _keep(self, version: int, items: list[Object]) -> str:
        self._version += 1
        token = f"rest-{self._version}"
        self._lists[token] = (version, items)
        while len(self._lists) > _MOST_LISTS:
            self._lists.pop(next(iter(self._lists)))
        return token

    def events(self, kind: str, query: dict[str, str]) -> Iterator[bytes]:
        """The lines of a watch until its time is over; ends early with an ERROR line or by ConnectionResetError."""
        seen = int(query.get("resourceVersion", "0") or 0)
        selector = query.get("fieldSelector", "")
        end = time.monotonic() + int(query.get("timeoutSeconds", "1800"))
        epoch, quiet_until = self._epoch, time.monotonic() + self._bookmark_seconds
        while (left := end - time.monotonic()) > 0:
            with self._changed:
                self._check_open(epoch)
                expired = seen < self._oldest
                found = self._since(seen)
                version = self._version
                if not found and not expired:
                    self._changed.wait(max(0.0, min(left, quiet_until - time.monotonic())))
            if expired:
                yield error_line(410, "Expired", f"too old resource version: {seen} ({self._oldest})")
                return
            for change in found:
                if change.kind == kind and (line := _line(change, selector)):
                    yield line
            seen = max(seen, version) if found else seen
            if time.monotonic() >= quiet_until:
                quiet_until = time.monotonic() + self._bookmark_seconds
                yield _bookmark(kind, seen)

    def _since(self, version: int) -> list[_Change]:
        """Changes after a version, oldest first."""
        found: list[_Change] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def _check_open(self, epoch: int) -> None:
        if self._stopping or epoch != self._epoch:
            raise ConnectionResetError("the watch was dropped")


def _line(change: _Change, selector: str) -> bytes:
    """The event as a watch with this selector sees it: an object that leaves the selector is deleted."""
    if change.raw:
        return change.raw
    before = change.before is not None and matches(change.before, selector)
    after = change.after is not None and matches(change.after, selector)
    if not before and not after:
        return b""
    what = "DELETED" if not after else "MODIFIED" if before else "ADDED"
    shown = change.after if change.after is not None else change.before
    meta = {**(shown or {})["metadata"], "resourceVersion": str(change.version)}
    return json.dumps({"type": what, "object": {**(shown or {}), "metadata": meta}}).encode()


def _bookmark(kind: str, version: int) -> bytes:
    shown = {"kind": _SINGULAR[kind], "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}
    return json.dumps({"type": "BOOKMARK", "object": shown}).encode()
