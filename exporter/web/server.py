"""The HTTP server: `/metrics`, the health endpoints and an index, served by one thread.

Expositions (the text of `/metrics`) arrive here rendered; a form that nobody asked for lately is made at the first
request for it. Nothing here reads a device, so a scrape costs the same whatever state the sources are in.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn

from exporter.web import listener
from exporter.web.basic_auth import Login, Logins
from exporter.web.endpoints import Endpoints, RenderedExposition
from exporter.web.html_pages import HEALTH, HtmlPage, HtmlPages, index
from exporter.web.http_protocol import ConnectionPool
from exporter.web.limits import Limits
from exporter.web.negotiation import OPENMETRICS, TEXT, wants_gzip, wants_openmetrics
from exporter.web.settings import WebSettings

_PIECE = 64 * 1024
"""Bytes of a body that are written to one connection at a time: what a client that does not read can occupy."""
_GRACE_SECONDS = 0.5
_JOIN_SECONDS = 1.5
_METHODS = frozenset({"GET", "HEAD"})


Headers = list[tuple[bytes, bytes]]
AsgiMessage = MutableMapping[str, Any]
AsgiApp = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Any
]


@dataclass(frozen=True, slots=True)
class Response:
    """A whole HTTP response."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


def _header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in headers if key == name)


def _metrics(exposition: RenderedExposition, headers: Sequence[tuple[bytes, bytes]]) -> Response:
    openmetrics = wants_openmetrics(_header(headers, b"accept"))
    more = [("Vary", "Accept, Accept-Encoding")]
    if wants_gzip(_header(headers, b"accept-encoding")):
        more.append(("Content-Encoding", "gzip"))
        body = exposition.openmetrics_gzip if openmetrics else exposition.text_gzip
    else:
        body = exposition.openmetrics if openmetrics else exposition.text
    return Response(200, body, OPENMETRICS if openmetrics else TEXT, tuple(more))


def _health(problem: str | None) -> Response:
    return Response(200, b"ok\n") if problem is None else Response(503, f"{problem}\n".encode())


def _html(page: HtmlPage | None) -> Response:
    if page is None:
        return Response(500, b"the status page cannot be made; the log has the cause\n")
    return Response(200, page.body, "text/html; charset=utf-8", page.headers())


def respond(
    method: str, path: str, headers: Sequence[tuple[bytes, bytes]], endpoints: Endpoints, title: str
) -> Response:
    """Make the response to one request; `headers` have lower-case names."""
    if method not in _METHODS:
        # The connection is closed because the body that may follow is never read.
        more = (("Allow", "GET, HEAD"), ("Connection", "close"))
        return Response(405, b"only GET and HEAD are served\n", headers=more)
    match path:
        case "/metrics":
            return _metrics(endpoints.exposition(), headers)
        case "/health":
            problem = endpoints.healthy()
            # dcgm-exporter's exact body; the GPU Operator's probes ask for it
            return Response(200, b"OK") if problem is None else _health(problem)
        case "/livez":
            return _health(endpoints.live())
        case "/readyz":
            return _health(endpoints.ready())
        case "/":
            return _html(index(title))
        case _:
            return Response(404, b"not found\n")


async def _denied(
    path: str, headers: Sequence[tuple[bytes, bytes]], users: Mapping[str, bytes], logins: Logins
) -> Response | None:
    """The response to a client that may not have this path, or None."""
    # Health needs no password: the kubelet's probes have none, and the answers tell nothing of the node.
    if not users or path in HEALTH:
        return None
    match await logins.check(users, _header(headers, b"authorization")):
        case Login.RIGHT:
            return None
        case Login.WRONG:
            return Response(401, b"Unauthorized\n", headers=(("WWW-Authenticate", "Basic"),))
        case Login.LATER:
            return Response(429, b"too many passwords are being compared\n", headers=(("Retry-After", "1"),))


def application(
    endpoints: Endpoints,
    title: str,
    settings: Callable[[], WebSettings],
    *,
    health_only: bool = False,
    status_page: Callable[[], HtmlPage] | None = None,
) -> AsgiApp:
    """Make the ASGI application. `settings` are asked for at each request: headers and users may change.

    Without `status_page`, `/` has links alone.
    """
    logins = Logins()
    pages = HtmlPages(status_page) if status_page is not None else None

    async def serve(
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[AsgiMessage]],  # noqa: ARG001 bodies are not read
        send: Callable[[AsgiMessage], Awaitable[None]],
    ) -> None:
        now, path = settings(), scope["path"]
        if health_only and path not in HEALTH:
            response = Response(404, b"not found\n")
        else:
            denied = await _denied(path, scope["headers"], now.users, logins)
            if denied is None and pages is not None and path == "/" and scope["method"] in _METHODS:
                response = _html(await pages.page())
            else:
                response = denied or respond(scope["method"], path, scope["headers"], endpoints, title)
        described = {"Content-Type": response.content_type, "Content-Length": str(len(response.body))}
        named = {"X-Content-Type-Options": "nosniff", **now.headers, **described, **dict(response.headers)}
        encoded: Headers = [(key.lower().encode(), value.encode("latin-1")) for key, value in named.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": encoded})
        # A response to HEAD has no body; uvicorn would leave it out itself, after it was given all of it.
        await _send_body(send, b"" if scope["method"] == "HEAD" else response.body)

    return serve


async def _send_body(send: Callable[[AsgiMessage], Awaitable[None]], body: bytes) -> None:
    """Send a body in pieces; `send` waits while the kernel has not taken the piece before."""
    for start in range(0, len(body) - _PIECE, _PIECE):
        piece = body[start : start + _PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)  # lets other connections run, and connection_lost when this client has gone
    last = body[(len(body) - 1) // _PIECE * _PIECE :] if body else b""
    await send({"type": "http.response.body", "body": last})


class HttpServer:
    """An HTTP server in a thread of its own.

    Listens on `address` (`:9400` means IPv4 and IPv6), or on `sockets` where some are given (systemd). `settings` gives
    those of now: a TLS context for each connection, headers and users for each request. TLS stays on or off.
    """

    def __init__(
        self,
        address: str,
        endpoints: Endpoints,
        *,
        title: str = "gpugauge",
        settings: Callable[[], WebSettings] = WebSettings,
        health_only: bool = False,
        status_page: Callable[[], HtmlPage] | None = None,
        sockets: Sequence[socket.socket] = (),
        limits: Limits | None = None,
    ) -> None:
        """With `health_only`, the health endpoints are all that is served; `status_page` makes what `/` shows."""
        self._address = address
        self._sockets = list(sockets)
        self._pool = ConnectionPool(limits or Limits(), settings if settings().tls else None)
        self._app = application(endpoints, title, settings, health_only=health_only, status_page=status_page)
        self._server = uvicorn.Server(_config(self._app, self._pool))
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0
        self.failure: BaseException | None = None
        """What ended the thread, if it was an exception."""

    @property
    def port(self) -> int:
        """The port in use once started, also where `:0` was asked for; 0 on a unix socket."""
        return self._port

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        return len(self._pool)

    def alive(self) -> bool:
        """Whether the thread serves."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Bind, then serve from another thread; clients may connect when this returns. Raises ListenError."""
        if not self._sockets:
            self._sockets = [listener.bind(self._address)]
        for one in self._sockets:
            if one.family in {socket.AF_INET, socket.AF_INET6}:
                # Accepted sockets inherit the option. asyncio (Python 3.11) sets it only on sockets that were made
                # with protocol number IPPROTO_TCP, not 0. Without it, headers and body of a short response on a
                # connection that is kept open arrive 40 ms apart (Nagle's algorithm and delayed acknowledgments).
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = self._sockets[0].getsockname()
        self._port = name[1] if isinstance(name, tuple) else 0
        self._server.config.load()
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and drop what is not answered half a second later. Returns within two seconds."""
        self._server.should_exit = True
        if self._loop is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._loop.call_later, _GRACE_SECONDS, self._pool.drop_all)
            except RuntimeError:  # the loop ended after the check above
                self._loop = None
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - any exception ends the thread; SystemExit would do so silently
            self.failure = error

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = self._loop.create_task(self._server.serve(self._sockets))
        while not (self._server.started or serving.done()):  # noqa: ASYNC110 uvicorn has no event for it
            await asyncio.sleep(0.01)
        # asyncio uses `backlog` both as the length of the kernel's queue and as the number of connections accepted at
        # a time (Python 3.11, _accept_connection). uvicorn was given the second; listening again sets the first.
        for one in self._sockets:
            if one.fileno() >= 0:
                one.listen(self._pool.limits.queue)
        await serving


def _config(app: AsgiApp, pool: ConnectionPool) -> uvicorn.Config:
    # uvicorn logs its own start and each malformed request below ERROR: any client could fill our log with those.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return uvicorn.Config(
        app,
        http=pool.make_protocol,  # type: ignore[arg-type] # uvicorn only calls it, so a method serves as well as a class
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=1,
        backlog=pool.limits.accepts,
        timeout_keep_alive=int(pool.limits.idle_seconds) + 60,  # never reached: our own idle deadline comes first
        timeout_graceful_shutdown=2,
    )
