"""A small API server over plain HTTP, for the demo and for tests.

It stores pods, nodes and namespaces, and other kinds on demand, as plain dictionaries and serves what a watcher uses:
paged lists, watches with bookmarks, resource versions that expire; also single objects. Tests can make single requests
fail.
"""

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace

from simulators.api_server_http import KINDS, ApiFault, ApiHttpServer, ApiRequest, ResourceName, error_event
from simulators.field_selector import matches
from simulators.leases import SimulatedLeases
from simulators.objects import KubernetesObject
from simulators.watch_events import ObjectChange, bookmark, event, singular

_MAX_LISTS = 100
_MAX_CHANGES = 100_000
_MAX_REQUESTS = 10_000


class SimulatedApiServer:
    """Serves in a thread of its own between `start` and `stop`. Every method may be called from any thread."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1", token: str = "", bookmark_seconds: float = 1.0) -> None:
        """With `token`, requests need it as bearer token. A silent watch sends a bookmark every `bookmark_seconds`."""
        self._address, self._token, self._bookmark_seconds = (host, port), token, bookmark_seconds
        self._changed = threading.Condition()
        self._objects: dict[str, dict[tuple[str, str], KubernetesObject]] = {kind: {} for kind in KINDS}
        self._paths = {f"/api/v1/{kind}": kind for kind in KINDS}
        self._changes: deque[ObjectChange] = deque(maxlen=_MAX_CHANGES)
        self._version = 1
        self._oldest = 0
        """Resource versions before this one have expired."""
        self._disconnects = 0
        self._lists: dict[str, tuple[int, list[KubernetesObject]]] = {}
        """Version and remaining objects of lists that were read in part, by continue token."""
        self._faults: list[ApiFault] = []
        self._clears = 0
        self._stopping = False
        self._port: socket.socket | None = None
        self._server: ApiHttpServer | None = None
        self._thread: threading.Thread | None = None
        self._requests: deque[ApiRequest] = deque(maxlen=_MAX_REQUESTS)
        self.leases = SimulatedLeases()
        """Another server's may take their place: then both serve the same leases."""

    @property
    def url(self) -> str:
        """Address of the server; the port is known after the first start."""
        return f"http://{self._address[0]}:{self._address[1]}"

    @property
    def requests(self) -> tuple[ApiRequest, ...]:
        """The requests that were accepted lately, oldest first."""
        with self._changed:
            return tuple(self._requests)

    def start(self) -> None:
        """Bind the port and serve; after a `stop`, on the same port again. Raises OSError when the port is taken."""
        self._stopping = False
        self._reserve_port()
        self._server = ApiHttpServer(self._address, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self, *, keep_port: bool = False) -> None:
        """End every connection and free the port; objects and versions stay.

        With `keep_port` the port stays reserved for the next start, and connections to it are refused until then.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.close_connections()
            self._server.server_close()
            self._thread.join()
        self._server = None
        if self._port is not None and not keep_port:
            self._port.close()
            self._port = None

    def _reserve_port(self) -> None:
        """Bind a socket that never listens.

        On Linux the server can bind the same port, because both sockets have SO_REUSEADDR (socketserver sets it), and
        the kernel gives the port to no other process while the server is stopped.
        """
        if self._port is not None:
            return
        port = socket.socket()
        try:
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port.bind(self._address)
        except OSError:
            port.close()
            raise
        self._address = (self._address[0], port.getsockname()[1])
        self._port = port

    def serve(self, path: str) -> None:
        """Serve one more kind, at a path such as `/apis/batch/v1/jobs`."""
        with self._changed:
            kind = path.rpartition("/")[2]
            self._paths[path] = kind
            self._objects.setdefault(kind, {})

    def unserve(self, path: str) -> None:
        """Serve a kind no longer at this path; its objects stay, for other paths."""
        with self._changed:
            del self._paths[path]

    def kind_at(self, path: str) -> str | None:
        """The kind that is served at a path, None where there is none."""
        with self._changed:
            return self._paths.get(path)

    def put(self, kind: ResourceName, given: KubernetesObject) -> None:
        """Add an object, or replace the one with the same namespace and name."""
        with self._changed:
            self._version += 1
            meta = {**given["metadata"], "resourceVersion": str(self._version)}
            key = (str(meta.get("namespace", "")), str(meta["name"]))
            after = {**given, "metadata": meta}
            self._add_change(ObjectChange(self._version, kind, self._objects[kind].get(key), after))
            self._objects[kind][key] = after

    def delete(self, kind: ResourceName, name: str, namespace: str = "") -> None:
        """Delete an object. Raises KeyError when there is no such object."""
        with self._changed:
            self._version += 1
            before = self._objects[kind].pop((namespace, name))
            self._add_change(ObjectChange(self._version, kind, before, None))

    def send(self, kind: ResourceName, line: bytes) -> None:
        """Send a line of any content to the watches of a kind, also to later ones that begin at an older version."""
        with self._changed:
            self._version += 1
            self._add_change(ObjectChange(self._version, kind, None, None, line))

    def expire(self) -> None:
        """Drop all history: watches from older versions, open ones included, and partly read lists end with 410."""
        with self._changed:
            self._version += 1
            self._oldest = self._version
            self._lists.clear()
            self._changes.clear()
            self._changed.notify_all()

    def disconnect(self) -> None:
        """Close the connection of every watch that was accepted so far, without an event."""
        with self._changed:
            self._disconnects += 1
            self._changed.notify_all()

    def add_fault(self, fault: ApiFault) -> None:
        """Let the next requests of one type fail."""
        with self._changed:
            self._faults.append(fault)

    def clear_faults(self) -> None:
        """Remove all faults and end delays in progress."""
        with self._changed:
            self._faults.clear()
            self._clears += 1
            self._changed.notify_all()

    def _add_change(self, change: ObjectChange) -> None:
        self._changes.append(change)
        self._changed.notify_all()

    def accept(self, kind: str, query: dict[str, str], headers: Mapping[str, str], path: str = "") -> ApiRequest:
        """Record a request. What happens from now on affects it, even before it is served."""
        watch = query.get("watch") in ("true", "1")
        with self._changed:
            at = time.monotonic()
            authorization, agent = headers.get("Authorization", ""), headers.get("User-Agent", "")
            request = ApiRequest(kind, watch, query, authorization, at, self._disconnects, agent, self._clears, path)
            self._requests.append(request)
            return request

    def allows(self, authorization: str) -> bool:
        """Whether the header Authorization has the right token."""
        return not self._token or authorization == f"Bearer {self._token}"

    def pause(self, request: ApiRequest, seconds: float) -> None:
        """Wait until the time is over, the faults are cleared or the server stops."""
        limit = min(seconds, threading.TIMEOUT_MAX)
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._clears != request.clears, limit)

    def lease(self, method: str, path: str, body: bytes) -> tuple[int, KubernetesObject]:
        """Serve a request for a lease. Returns the HTTP status and the body of the response."""
        return self.leases.answer(method, path, body)

    def next_fault(self, on: str, kind: str, path: str = "") -> ApiFault | None:
        """Take the first fault that affects such a request; None when there is none."""
        with self._changed:
            for index, fault in enumerate(self._faults):
                if fault.on == on and fault.kind in (None, kind) and fault.path in ("", path):
                    left = replace(fault, times=fault.times - 1)
                    self._faults[index : index + 1] = [left] if left.times else []
                    return fault
        return None

    def get(self, kind: str, namespace: str, name: str) -> KubernetesObject | None:
        """Return one object; None where there is none."""
        with self._changed:
            return self._objects[kind].get((namespace, name))

    def page(self, kind: str, query: dict[str, str]) -> KubernetesObject | None:
        """Return one page of a list; None when its continue token has expired."""
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
            meta: KubernetesObject = {"resourceVersion": str(version)}
            if len(items) > limit:
                meta["continue"] = self._keep(version, items[limit:])
                meta["remainingItemCount"] = len(items) - limit
        return {"kind": f"{singular(kind)}List", "apiVersion": "v1", "metadata": meta, "items": items[:limit]}

    def _keep(self, version: int, items: list[KubernetesObject]) -> str:
        """Keep the remaining objects of a list and return their continue token."""
        self._version += 1
        token = f"rest-{self._version}"
        self._lists[token] = (version, items)
        while len(self._lists) > _MAX_LISTS:
            self._lists.pop(next(iter(self._lists)))
        return token

    def events(self, request: ApiRequest) -> Iterator[bytes]:
        """Yield the lines of a watch until its time is over, or until an ERROR event for an expired version.

        Raises ConnectionResetError when the server stops or disconnects.
        """
        kind, query = request.kind, request.query
        seen = int(query.get("resourceVersion", "0") or 0)
        selector = query.get("fieldSelector", "")
        end = time.monotonic() + int(query.get("timeoutSeconds", "1800"))
        bookmark_at = time.monotonic() + self._bookmark_seconds
        while (left := end - time.monotonic()) > 0:
            with self._changed:
                self._check_open(request)
                expired = seen < self._oldest
                found = self._since(seen)
                version = self._version
                if not found and not expired:
                    self._changed.wait(max(0.0, min(left, bookmark_at - time.monotonic())))
                    self._check_open(request)
            if expired:
                yield error_event(410, "Expired", f"too old resource version: {seen} ({self._oldest})")
                return
            for change in found:
                if change.kind == kind and (line := event(change, selector)):
                    yield line
            seen = max(seen, version) if found else seen
            if time.monotonic() >= bookmark_at:
                bookmark_at = time.monotonic() + self._bookmark_seconds
                yield bookmark(kind, seen)

    def _since(self, version: int) -> list[ObjectChange]:
        """Return the changes after a version, oldest first."""
        found: list[ObjectChange] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def _check_open(self, request: ApiRequest) -> None:
        if self._stopping or request.disconnects != self._disconnects:
            raise ConnectionResetError("the watch was disconnected")
