"""Hands out rendered pages and health over HTTP: bytes that are ready, one thread, whatever clients do.

Nothing here reads a device or renders: a scrape costs the same whatever state the sources are in.
"""

import asyncio
import html
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import uvicorn

from exporter.web import listener
from exporter.web.http_protocol import Crowd, Limits
from exporter.web.negotiation import OPENMETRICS, TEXT, wants_gzip, wants_openmetrics
from exporter.web.tls import Certificates, TlsFiles

_PIECE = 64 * 1024
"""Bytes of a page handed to one connection at a time: what a client that does not read can hold."""
_GRACE_SECONDS = 0.5
_JOIN_SECONDS = 1.5
_LINKS = ("/metrics", "/health", "/livez", "/readyz")


class Rendered(Protocol):
    """One page in the four forms a client may ask for, as they go out."""

    @property
    def text(self) -> bytes: ...

    @property
    def text_gzip(self) -> bytes: ...

    @property
    def openmetrics(self) -> bytes: ...

    @property
    def openmetrics_gzip(self) -> bytes: ...


class Pages(Protocol):
    """What is served. Each call reads a reference and returns at once: it is made between two connections' bytes."""

    def rendered(self) -> Rendered:
        """The newest page; before the first pass, one with the exporter's own metrics."""
        ...

    def live(self) -> str | None:
        """None, or the sentence that says why the process should be restarted; no paths, no arguments."""
        ...

    def ready(self) -> str | None:
        """None, or the sentence that says why there is nothing useful to scrape yet; no paths, no arguments."""
        ...


Headers = list[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
App = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


def _header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in headers if key == name)


def _metrics(page: Rendered, headers: Sequence[tuple[bytes, bytes]]) -> Answer:
    openmetrics = wants_openmetrics(_header(headers, b"accept"))
    more = [("Vary", "Accept, Accept-Encoding")]
    if wants_gzip(_header(headers, b"accept-encoding")):
        more.append(("Content-Encoding", "gzip"))
        body = page.openmetrics_gzip if openmetrics else page.text_gzip
    else:
        body = page.openmetrics if openmetrics else page.text
    return Answer(200, body, OPENMETRICS if openmetrics else TEXT, tuple(more))


def _health(problem: str | None) -> Answer:
    return Answer(200, b"ok\n") if problem is None else Answer(503, f"{problem}\n".encode())


def _index(title: str) -> Answer:
    name = html.escape(title)
    links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in _LINKS)
    page = f'<!DOCTYPE html><html lang="en"><title>{name}</title><h1>{name}</h1><ul>{links}</ul></html>\n'
    return Answer(200, page.encode(), "text/html; charset=utf-8")


def answer(method: str, path: str, headers: Sequence[tuple[bytes, bytes]], pages: Pages, title: str) -> Answer:
    """The response to one request; `headers` have lower-case names."""
    if method not in {"GET", "HEAD"}:
        # The connection closes because nobody will read the body that may follow.
        more = (("Allow", "GET, HEAD"), ("Connection", "close"))
        return Answer(405, b"only GET and HEAD are served\n", headers=more)
    match path:
        case "/metrics":
            return _metrics(pages.rendered(), headers)
        case "/health":
            return Answer(200, b"OK")  # dcgm-exporter's exact answer, which the GPU Operator's probes know
        case "/livez":
            return _health(pages.live())
        case "/readyz":
            return _health(pages.ready())
        case "/":
            return _index(title)
        case _:
            return Answer(404, b"not found\n")


def application(pages: Pages, title: str, headers: Mapping[str, str]) -> App:
    """The ASGI application; `headers` go out with every answer."""
    fixed = [("X-Content-Type-Options", "nosniff"), *headers.items()]

    async def serve(
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],  # noqa: ARG001 bodies are not read
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        given = answer(scope["method"], scope["path"], scope["headers"], pages, title)
        described = {"Content-Type": given.content_type, "Content-Length": str(len(given.body))}
        named = {**dict(fixed), **described, **dict(given.headers)}
        encoded: Headers = [(key.lower().encode(), value.encode("latin-1")) for key, value in named.items()]
        await send({"type": "http.response.start", "status": given.status, "headers": encoded})
        # HEAD gets no body; uvicorn would need it once to leave it out.
        body = b"" if scope["method"] == "HEAD" else given.body
        for start in range(0, len(body) - _PIECE, _PIECE):
            piece = body[start : start + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # others' turn, and the news that this client is gone
        last = body[(len(body) - 1) // _PIECE * _PIECE :] if body else b""
        await send({"type": "http.response.body", "body": last})

    return serve


class Server:
    """An HTTP server in a thread of its own.

    Listens on `address` (`:9400` means IPv4 and IPv6), or on `sockets` where some are given (systemd). With `tls`,
    every connection is TLS and changed files are taken up without a restart.
    """

    def __init__(
        self,
        address: str,
        pages: Pages,
        *,
        title: str = "gpugauge",
        tls: TlsFiles | None = None,
        headers: Mapping[str, str] | None = None,
        sockets: Sequence[socket.socket] = (),
        limits: Limits | None = None,
    ) -> None:
        """Raises TlsError where the TLS files do not work."""
        self._address = address
        self._sockets = list(sockets)
        limits = limits or Limits()
        self._crowd = Crowd(limits, Certificates(tls).current if tls else None)
        self._app = application(pages, title, headers or {})
        self._server = uvicorn.Server(_config(self._app, self._crowd))
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """The port in use once started, also where `:0` was asked for; 0 on a unix socket."""
        return self._port

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        return len(self._crowd)

    def alive(self) -> bool:
        """Whether the thread serves."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Binds, then serves from another thread; clients may connect when this returns. Raises ListenError."""
        if not self._sockets:
            self._sockets = [listener.bind(self._address)]
        for one in self._sockets:
            if one.family in {socket.AF_INET, socket.AF_INET6}:
                # Accepted sockets inherit it. asyncio would set it only where the protocol number is spelled out, and
                # without it headers and body of a short answer are 40 ms apart on a connection kept alive.
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = self._sockets[0].getsockname()
        self._port = name[1] if isinstance(name, tuple) else 0
        self._server.config.load()
        self._thread.start()

    def stop(self) -> None:
        """Stops listening, lets answers under way finish for half a second, drops the rest: two seconds at most."""
        self._server.should_exit = True
        if self._loop is not None and self._thread.is_alive():
            try:
                self._loop.call_soon_threadsafe(self._loop.call_later, _GRACE_SECONDS, self._crowd.drop_all)
            except RuntimeError:  # the loop ended between the two lines
                self._loop = None
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = self._loop.create_task(self._server.serve(self._sockets))
        while not (self._server.started or serving.done()):  # noqa: ASYNC110 uvicorn has no event for it
            await asyncio.sleep(0.01)
        # asyncio takes one number for the kernel's queue and for accepts at a time; the two differ here.
        for one in self._sockets:
            if one.fileno() >= 0:
                one.listen(self._crowd.limits.queue)
        await serving


def _config(app: App, crowd: Crowd) -> uvicorn.Config:
    # uvicorn's progress and its complaints about malformed requests are not for our log: anyone could fill it.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return uvicorn.Config(
        app,
        http=crowd.protocol,  # type: ignore[arg-type] # a callable that makes one serves as well as the class
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=1,
        backlog=crowd.limits.accepts,
        timeout_keep_alive=int(crowd.limits.idle_seconds) + 60,
        timeout_graceful_shutdown=2,
    )
