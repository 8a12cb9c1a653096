"""One HTTP connection with a deadline on every wait, and the pool of all connections with a limit on their number.

uvicorn's own protocol (0.54) has no deadline for a request that is half sent or for a response that the client does
not read, and answers 503 at its connection limit. Here both have deadlines, a TLS handshake counts as a connection,
and at the limit the connection that has waited longest for a request is closed in favor of the new one.
"""

import asyncio
import enum
import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from exporter.web.limits import Limits
from exporter.web.settings import WebSettings
from exporter.web.tls import names_of

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


class Phase(enum.Enum):
    """The phases of a connection; each has its own deadline."""

    REQUEST = enum.auto()
    """Waiting for the rest of a request."""
    RESPONSE = enum.auto()
    """Waiting until the response is written and taken by the kernel."""
    IDLE = enum.auto()
    """Waiting for the next request."""


class ConnectionPool:
    """Every open connection, in the order in which each entered its present phase."""

    def __init__(self, limits: Limits, settings: Callable[[], WebSettings] | None = None) -> None:
        """`settings` have the TLS context for the next connection; None serves plain HTTP."""
        self.limits = limits
        self.settings = settings
        self._connections: dict[BoundedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def make_protocol(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "BoundedConnection":
        """Make the protocol of one accepted connection; uvicorn calls this in place of a protocol class."""
        return BoundedConnection(self, config, server_state, app_state, _loop)

    def add(self, new: "BoundedConnection") -> None:
        """Add a connection; at the limit, drop the one that has waited longest for a request.

        A connection that waits for its response is dropped only where all of them do.
        """
        if len(self._connections) >= self.limits.connections:
            candidates = (each for each in self._connections if each.phase is not Phase.RESPONSE)
            next(candidates, next(iter(self._connections))).drop()
        self._connections[new] = None

    def move_to_end(self, connection: "BoundedConnection") -> None:
        """Make the connection the one that has waited for the shortest time."""
        if connection in self._connections:
            del self._connections[connection]
            self._connections[connection] = None

    def remove(self, connection: "BoundedConnection") -> None:
        """Remove a connection that ended; nothing happens when it is not there."""
        self._connections.pop(connection, None)

    def drop_all(self) -> None:
        """Drop every connection."""
        for connection in list(self._connections):
            connection.drop()


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's protocol with deadlines.

    It starts TLS itself, after the connection was counted, so that a handshake is bounded, too.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.phase = Phase.REQUEST
        self._pool = pool
        self._timer: asyncio.TimerHandle | None = None
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._received = 0
        self._early_data = b""
        self._reading_headers = False
        self._reading_message = False
        self._header_bytes = 0
        self._raw: asyncio.Transport
        self._handshake: asyncio.Task[None] | None = None

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        # asyncio pauses writing above `high` bytes. With 0 it pauses as soon as the kernel does not take a byte, so
        # that one piece of a response waits in memory and never a whole response.
        self._raw.set_write_buffer_limits(high=0)
        self._pool.add(self)
        self._enter(Phase.REQUEST)
        settings = self._pool.settings and self._pool.settings()
        if not settings or settings.tls is None:
            super().connection_made(self._raw)
        else:
            self._handshake = self.loop.create_task(self._start_tls(settings.tls, settings.allowed_sans))

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._pool.limits.request_bytes:
            self.drop()
        elif self.transport is None:
            # asyncio passes on decrypted data when the handshake ends, before the task that waits for its end runs.
            self._early_data += data
        else:
            self._parse(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave_pool()
        self._stop_responses()
        if self.transport is not None:
            super().connection_lost(exc)

    # Called by uvicorn

    def on_response_complete(self) -> None:
        self._received = 0
        self._unanswered.popleft()
        super().on_response_complete()
        if self._responding():
            self._enter(Phase.RESPONSE)
        else:
            self._enter(Phase.REQUEST if self._reading_message or self.pipeline else Phase.IDLE)

    # Called by the parser (httptools)

    def on_message_begin(self) -> None:
        self._reading_headers = self._reading_message = True
        self._header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_headers(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_headers(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._reading_headers = False
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        if self.parser.should_upgrade():
            # No other protocol is served, and after a request to upgrade httptools parses nothing more.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self._reading_message = False
        super().on_message_complete()

    # Added to uvicorn's protocol

    def drop(self) -> None:
        """End the connection now; what was not sent yet is lost."""
        self._leave_pool()
        self._stop_responses()
        self._raw.abort()

    def _stop_responses(self) -> None:
        """Make uvicorn write no more of any response."""
        # uvicorn (0.54) does so itself only for the last of several pipelined requests. The responses to the others it
        # writes to the closed transport, and asyncio logs a warning for each such write.
        for cycle in self._unanswered:
            cycle.disconnected = True

    async def _start_tls(self, context: ssl.SSLContext, allowed_sans: frozenset[str]) -> None:
        seconds = self._pool.limits.request_seconds
        try:
            secured = await self.loop.start_tls(
                self._raw, self, context, server_side=True, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=1.0
            )
        except OSError:
            # A failed handshake (ssl.SSLError is an OSError) is not logged: any client could fill the log with them.
            self._leave_pool()
            return
        if secured is None:  # asyncio's result when the client closed the connection during the handshake
            self._leave_pool()
            return
        if allowed_sans and allowed_sans.isdisjoint(names_of(secured.get_extra_info("peercert") or {})):
            self.drop()
            return
        super().connection_made(secured)
        # asyncio's TLS transport pauses writing at `high` bytes or more, not above them: 0 would pause it always.
        secured.set_write_buffer_limits(high=1, low=0)
        if self._early_data:
            self._parse(self._early_data)
            self._early_data = b""

    def _parse(self, data: bytes) -> None:
        if self.phase is Phase.IDLE or (self.phase is Phase.RESPONSE and not self._responding()):
            self._enter(Phase.REQUEST)
        super().data_received(data)
        if self._reading_headers and self._received > self._pool.limits.header_bytes:
            self.send_400_response("the headers are too long")
        if self.phase is Phase.REQUEST and self._responding():
            self._enter(Phase.RESPONSE)

    def send_400_response(self, msg: str) -> None:
        """Answer 400. Only close where another response is not finished, or one to this request was already sent."""
        in_body = self._reading_message and not self._reading_headers
        self._reading_headers = False
        if self.cycle is not None and (in_body or not self.cycle.response_complete):
            self.drop()
        else:
            super().send_400_response(msg)

    def _count_headers(self, size: int) -> None:
        """Count bytes of the URL and the headers. Raises ValueError above the limit.

        httptools (0.9) has no limit of its own; an exception in one of its callbacks makes it report a malformed
        request.
        """
        self._header_bytes += size
        if self._header_bytes > self._pool.limits.header_bytes:
            raise ValueError("the headers are too long")

    def _responding(self) -> bool:
        """Whether a response is not finished, or finished and not yet taken by the kernel."""
        unfinished = self.cycle is not None and not self.cycle.response_complete
        transports = (self._raw, self.transport)
        return unfinished or any(one.is_closing() or one.get_write_buffer_size() > 0 for one in transports)

    def _enter(self, phase: Phase) -> None:
        """Begin a phase: its deadline starts now."""
        limits = self._pool.limits
        seconds = {
            Phase.REQUEST: limits.request_seconds,
            Phase.RESPONSE: limits.response_seconds,
            Phase.IDLE: limits.idle_seconds,
        }[phase]
        self.phase = phase
        self._pool.move_to_end(self)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        # The kernel may have taken the last byte since: without new data nothing else ends the phase RESPONSE.
        if self.phase is Phase.RESPONSE and not self._responding():
            self._enter(Phase.IDLE)
        else:
            self.drop()

    def _leave_pool(self) -> None:
        self._pool.remove(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
