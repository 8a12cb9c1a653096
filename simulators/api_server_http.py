"""The HTTP side of the simulated API server: connections, requests, responses, and the faults of single requests."""

import gzip
import json
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol
from urllib.parse import parse_qsl, urlsplit

from simulators.objects import KubernetesObject

ResourceName = str
"""The plural name of a kind, such as `pods`."""
KINDS: tuple[ResourceName, ...] = ("pods", "nodes", "namespaces")
"""Kinds that are served from the start; `SimulatedApiServer.serve` adds others."""
_OF_NAMESPACE = re.compile(r"(.*/)namespaces/([^/]+)/([^/]+)(?:/([^/]+))?", re.ASCII)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/"
"""Where the leases of each namespace are."""
_COMPRESSED_FROM = 128 << 10
"""Bytes from which the API server compresses a response, for clients that accept gzip."""


@dataclass(frozen=True, slots=True)
class ApiFault:
    """What goes wrong with the next requests of one type."""

    on: Literal["list", "watch", "get", "lease"]
    kind: ResourceName | None = None
    """None: any kind."""
    path: str = ""
    """Only requests of exactly this path; empty: any path."""
    times: int = 1
    """How many requests it affects."""
    delay: float = 0.0
    """Seconds before the response; infinite for one that comes only after `clear_faults`."""
    status: int = 0
    """Respond with this HTTP status."""
    retry_after: int | None = None
    """Seconds, for the header Retry-After of that response."""
    event: int = 0
    """Respond to a watch with an ERROR event of this code."""
    garbage: bytes = b""
    """Respond with this instead of JSON."""
    drop: bool = False
    """Close the connection after the headers of the response."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request as it was accepted."""

    kind: str
    watch: bool
    query: dict[str, str]
    authorization: str
    at: float
    """When it was accepted, by the monotonic clock."""
    disconnects: int
    """How often the server had disconnected its watches until then. A watch ends at the next time."""
    agent: str
    """The header User-Agent."""
    clears: int
    """How often the server's faults had been cleared until then. A delay ends at the next time."""
    path: str = ""


class ApiBackend(Protocol):
    """The methods of the API server that its HTTP side calls."""

    def accept(self, kind: str, query: dict[str, str], headers: Mapping[str, str], path: str = "") -> ApiRequest: ...

    def kind_at(self, path: str) -> str | None: ...

    def allows(self, authorization: str) -> bool: ...

    def next_fault(self, on: str, kind: str, path: str = "") -> ApiFault | None: ...

    def page(self, kind: str, query: dict[str, str]) -> KubernetesObject | None: ...

    def get(self, kind: str, namespace: str, name: str) -> KubernetesObject | None: ...

    def events(self, request: ApiRequest) -> Iterator[bytes]: ...

    def pause(self, request: ApiRequest, seconds: float) -> None: ...

    def lease(self, method: str, path: str, body: bytes) -> tuple[int, KubernetesObject]: ...


def status_object(code: int, reason: str, message: str) -> KubernetesObject:
    """Make the body of an API server's error."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def error_event(code: int, reason: str, message: str) -> bytes:
    """Make an ERROR event of a watch."""
    return json.dumps({"type": "ERROR", "object": status_object(code, reason, message)}).encode()


class ApiHttpServer(ThreadingHTTPServer):
    """Accepts connections; each is served by a thread that ends with it."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], backend: ApiBackend) -> None:
        self.backend = backend
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _RequestHandler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, peer = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, peer

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """End every connection, also the idle ones that clients keep for later requests."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that closed its connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _RequestHandler(BaseHTTPRequestHandler):
    """Serves one connection."""

    server: ApiHttpServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the API server keeps the requests."""

    def do_POST(self) -> None:
        self._serve_lease()

    def do_PUT(self) -> None:
        self._serve_lease()

    def _serve_lease(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.title(): value for name, value in self.headers.items()}
        request = self.server.backend.accept("leases", {"method": self.command}, headers, self.path)
        if not self.server.backend.allows(request.authorization):
            self._send_error_status(401, "Unauthorized")
            return
        fault = self.server.backend.next_fault("lease", "leases", self.path)
        if fault is None or not self._apply(fault, request):
            code, answer = self.server.backend.lease(self.command, self.path, body)
            self._send(code, json.dumps(answer).encode())

    def do_GET(self) -> None:
        if self.path.startswith(LEASES):
            self._serve_lease()
            return
        parts = urlsplit(self.path)
        kind, namespace, name = self._target(parts.path)
        query = dict(parse_qsl(parts.query))
        if namespace and not name:
            own = f"metadata.namespace={namespace}"
            query["fieldSelector"] = ",".join(filter(None, (query.get("fieldSelector"), own)))
        headers = {name.title(): value for name, value in self.headers.items()}
        request = self.server.backend.accept(kind or parts.path, query, headers, parts.path)
        if not self.server.backend.allows(request.authorization):
            self._send_error_status(401, "Unauthorized")
        elif kind is None:
            self._send_error_status(404, "NotFound")
        elif name:
            self._serve_one(request, namespace, name)
        else:
            self._serve(request)

    def _target(self, path: str) -> tuple[str | None, str, str]:
        """The kind that is served at a path, and the namespace and the name that it is for; empty for all."""
        kind = self.server.backend.kind_at(path)
        found = _OF_NAMESPACE.fullmatch(path)
        if kind is not None or found is None:
            return kind, "", ""
        group, namespace, plural, name = found.groups(default="")
        return self.server.backend.kind_at(group + plural), namespace, name

    def _serve_one(self, request: ApiRequest, namespace: str, name: str) -> None:
        fault = self.server.backend.next_fault("get", request.kind, request.path)
        if fault is not None and self._apply(fault, request):
            return
        found = self.server.backend.get(request.kind, namespace, name)
        if found is None:
            self._send_error_status(404, "NotFound")
        else:
            self._send(200, json.dumps(found).encode())

    def _serve(self, request: ApiRequest) -> None:
        fault = self.server.backend.next_fault("watch" if request.watch else "list", request.kind, request.path)
        if fault is not None and self._apply(fault, request):
            return
        if request.watch:
            self._stream(request)
            return
        page = self.server.backend.page(request.kind, request.query)
        if page is None:
            self._send_error_status(410, "Expired")
        else:
            self._send(200, json.dumps(page).encode())

    def _apply(self, fault: ApiFault, request: ApiRequest) -> bool:
        """Apply a fault. Return False when it was only a delay and the request is still to be served."""
        if fault.delay:
            self.server.backend.pause(request, fault.delay)
        if fault.status:
            self._send_error_status(fault.status, "ApiFault", fault.retry_after)
        elif fault.event:
            self._send(200, error_event(fault.event, "ApiFault", "a fault of the simulated API server") + b"\n")
        elif fault.garbage:
            self._send(200, fault.garbage)
        elif fault.drop:
            self._send_headers(200, ("Content-Length", "1000000"))
            self.close_connection = True
        else:
            return False
        return True

    def _stream(self, request: ApiRequest) -> None:
        self._send_headers(200, ("Transfer-Encoding", "chunked"))
        try:
            for line in self.server.backend.events(request):
                self.wfile.write(b"%x\r\n%b\n\r\n" % (len(line) + 1, line))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the server disconnected, or the client did
            self.close_connection = True

    def _send_error_status(self, code: int, reason: str, retry_after: int | None = None) -> None:
        headers = [] if retry_after is None else [("Retry-After", str(retry_after))]
        self._send(code, json.dumps(status_object(code, reason, reason)).encode(), *headers)

    def _send(self, code: int, body: bytes, *headers: tuple[str, str]) -> None:
        if len(body) > _COMPRESSED_FROM and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers = gzip.compress(body, 1), (*headers, ("Content-Encoding", "gzip"))
        self._send_headers(code, ("Content-Length", str(len(body))), *headers)
        self.wfile.write(body)

    def _send_headers(self, code: int, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
