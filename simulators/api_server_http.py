"""The HTTP side of the simulated API server: one connection after another, and what may go wrong with each."""

import gzip
import json
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol
from urllib.parse import parse_qsl, urlsplit

Object = dict[str, Any]
KindName = Literal["pods", "nodes", "namespaces"]
KINDS: tuple[KindName, ...] = ("pods", "nodes", "namespaces")
_COMPRESSED_FROM = 128 << 10
"""Bytes above which the API server compresses an answer for whoever can read it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with the next requests of one sort."""

    on: Literal["list", "watch"]
    kind: KindName | None = None
    """None: any kind."""
    times: int = 1
    delay: float = 0.0
    """Seconds before the answer."""
    status: int = 0
    """Answer with this HTTP status."""
    retry_after: int | None = None
    event: int = 0
    """Answer a watch with an ERROR event of this code."""
    garbage: bytes = b""
    """Answer with this instead of JSON."""
    drop: bool = False
    """Close the connection after the head of the answer."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    kind: str
    watch: bool
    query: dict[str, str]
    authorization: str
    at: float


class Behind(Protocol):
    """What a connection asks of the server behind it."""

    requests: deque[Request]

    def allows(self, authorization: str) -> bool: ...

    def next_fault(self, on: str, kind: str) -> Fault | None: ...

    def page(self, kind: str, query: dict[str, str]) -> Object | None: ...

    def events(self, kind: str, query: dict[str, str]) -> Iterator[bytes]: ...

    def pause(self, seconds: float) -> None: ...


def status_of(code: int, reason: str, message: str) -> Object:
    """What the API server says when it refuses."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def error_line(code: int, reason: str, message: str) -> bytes:
    return json.dumps({"type": "ERROR", "object": status_of(code, reason, message)}).encode()


class Server(ThreadingHTTPServer):
    """Accepts connections, each served by a thread that ends with it."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], behind: Behind) -> None:
        self.behind = behind
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Exchange)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, peer = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, peer

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends every connection, also those that a client keeps for later."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is nothing to speak of."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Exchange(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: requests are kept for whoever asks."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        kind = parts.path.removeprefix("/api/v1/")
        watch = query.get("watch") in ("true", "1")
        authorization = self.headers.get("Authorization", "")
        self.server.behind.requests.append(Request(kind, watch, query, authorization, time.time()))
        if not self.server.behind.allows(authorization):
            self._refuse(401, "Unauthorized")
        elif kind not in KINDS:
            self._refuse(404, "NotFound")
        else:
            self._serve(kind, query, watch=watch)

    def _serve(self, kind: str, query: dict[str, str], *, watch: bool) -> None:
        fault = self.server.behind.next_fault("watch" if watch else "list", kind)
        if fault is not None and self._faulty(fault):
            return
        if watch:
            self._stream(kind, query)
            return
        page = self.server.behind.page(kind, query)
        if page is None:
            self._refuse(410, "Expired")
        else:
            self._answer(200, json.dumps(page).encode())

    def _faulty(self, fault: Fault) -> bool:
        """Carries a fault out; False when it was only a delay."""
        if fault.delay:
            self.server.behind.pause(fault.delay)
        if fault.status:
            self._refuse(fault.status, "Fault", fault.retry_after)
        elif fault.event:
            self._answer(200, error_line(fault.event, "Fault", "as told") + b"\n")
        elif fault.garbage:
            self._answer(200, fault.garbage)
        elif fault.drop:
            self._head(200, ("Content-Length", "1000000"))
            self.close_connection = True
        else:
            return False
        return True

    def _stream(self, kind: str, query: dict[str, str]) -> None:
        self._head(200, ("Transfer-Encoding", "chunked"))
        try:
            for line in self.server.behind.events(kind, query):
                self.wfile.write(b"%x\r\n%b\n\r\n" % (len(line) + 1, line))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:  # dropped on purpose, or the watcher has gone
            self.close_connection = True

    def _refuse(self, code: int, reason: str, retry_after: int | None = None) -> None:
        more = [] if retry_after is None else [("Retry-After", str(retry_after))]
        self._answer(code, json.dumps(status_of(code, reason, reason)).encode(), *more)

    def _answer(self, code: int, body: bytes, *headers: tuple[str, str]) -> None:
        if len(body) > _COMPRESSED_FROM and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers = gzip.compress(body, 1), (*headers, ("Content-Encoding", "gzip"))
        self._head(code, ("Content-Length", str(len(body))), *headers)
        self.wfile.write(body)

    def _head(self, code: int, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
