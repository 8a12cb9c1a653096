"""One HTTP connection with every wait bounded, and the crowd of them with their number bounded.

uvicorn's own protocol lets a half-sent request or an unread response wait for ever, and answers 503 at its
connection limit. Here both have deadlines, TLS handshakes count as connections, and at the limit the connection that
has been waiting longest gives way to the new one.
"""

import asyncio
import enum
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take. Times in seconds, sizes in bytes."""

    request_seconds: float = 10.0
    """From the first byte (or the connection) to the end of the headers, TLS handshake included."""
    response_seconds: float = 30.0
    """From the whole request until the kernel has taken the last byte of the answer."""
    idle_seconds: float = 120.0
    """Between two requests on one connection; longer than usual scrape intervals."""
    connections: int = 128
    header_bytes: int = 16 * 1024
    request_bytes: int = 64 * 1024
    """Of one request with its body, which nobody reads."""
    accepts: int = 16
    """Accepted between two looks at those who are there already: far fewer than `connections`, so that in a flood a
    request that came with its connection is read before newcomers could push it out."""
    queue: int = 512
    """Connections that wait in the kernel to be accepted."""


class Phase(enum.Enum):
    """What a connection is waiting for: the client's request, the client's reading, or nothing in particular."""

    ASKING = enum.auto()
    ANSWERING = enum.auto()
    IDLE = enum.auto()


class Crowd:
    """Every open connection, in the order in which they began to wait for what they now wait for."""

    def __init__(self, limits: Limits, context: Callable[[], ssl.SSLContext] | None = None) -> None:
        """`context` gives the TLS context for the next connection; None serves plain HTTP."""
        self.limits = limits
        self.context = context
        self._members: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._members)

    def protocol(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "Connection":
        """What uvicorn calls for each accepted connection, in place of the class it would use."""
        return Connection(self, config, server_state, app_state, _loop)

    def admit(self, newcomer: "Connection") -> None:
        """Takes a connection in, at the limit in exchange for the one that has been waiting longest.

        One that is being answered gives way only where all are.
        """
        if len(self._members) >= self.limits.connections:
            waiting = (member for member in self._members if member.phase is not Phase.ANSWERING)
            next(waiting, next(iter(self._members))).drop()
        self._members[newcomer] = None

    def requeue(self, member: "Connection") -> None:
        if member in self._members:
            del self._members[member]
            self._members[member] = None

    def forget(self, member: "Connection") -> None:
        self._members.pop(member, None)

    def drop_all(self) -> None:
        for member in list(self._members):
            member.drop()


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with deadlines; it calls the crowd's TLS itself so that handshakes are bounded, too."""

    def __init__(
        self,
        crowd: Crowd,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.phase = Phase.ASKING
        self._crowd = crowd
        self._timer: asyncio.TimerHandle | None = None
        self._received = 0
        self._early = b""
        self._reading_head = False
        self._reading_message = False
        self._head_bytes = 0
        self._raw: asyncio.Transport
        self._handshake: asyncio.Task[None] | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        # Writing pauses with the first byte that the kernel does not take: one piece of a page waits, never a page.
        self._raw.set_write_buffer_limits(high=0)
        self._crowd.admit(self)
        self._enter(Phase.ASKING)
        if self._crowd.context is None:
            super().connection_made(self._raw)
        else:
            self._handshake = self.loop.create_task(self._secure(self._crowd.context()))

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._crowd.limits.request_bytes:
            self.drop()
        elif self.transport is None:
            self._early += data  # decrypted before the handshake's task could take note of its end
        else:
            self._feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if self.transport is not None:
            super().connection_lost(exc)

    # What uvicorn calls

    def on_response_complete(self) -> None:
        self._received = 0
        super().on_response_complete()
        if self._busy():
            self._enter(Phase.ANSWERING)
        else:
            self._enter(Phase.ASKING if self._reading_message or self.pipeline else Phase.IDLE)

    # What the parser calls

    def on_message_begin(self) -> None:
        self._reading_head = self._reading_message = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._reading_head = False
        super().on_headers_complete()
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # no other protocol is spoken here, and the parser reads no further

    def on_message_complete(self) -> None:
        self._reading_message = False
        super().on_message_complete()

    # What is added

    def drop(self) -> None:
        """Ends the connection now; what was not sent yet is lost."""
        self._leave()
        self._silence()
        self._raw.abort()

    async def _secure(self, context: ssl.SSLContext) -> None:
        seconds = self._crowd.limits.request_seconds
        try:
            secured = await self.loop.start_tls(
                self._raw, self, context, server_side=True, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=1.0
            )
        except OSError:  # no handshake: the client's affair, and too cheap for anyone to fill the log with
            self._leave()
            return
        if secured is None:  # closed during the handshake
            self._leave()
            return
        super().connection_made(secured)
        secured.set_write_buffer_limits(high=1, low=0)  # asyncio's TLS counts `high` itself as too much
        if self._early:
            self._feed(self._early)
            self._early = b""

    def _feed(self, data: bytes) -> None:
        if self.phase is Phase.IDLE or (self.phase is Phase.ANSWERING and not self._busy()):
            self._enter(Phase.ASKING)
        super().data_received(data)
        if self._reading_head and self._received > self._crowd.limits.header_bytes:
            self.send_400_response("the headers are too long")
        if self.phase is Phase.ASKING and self._busy():
            self._enter(Phase.ANSWERING)

    def send_400_response(self, msg: str) -> None:
        """Says that a request is malformed; quietly ends the connection where an answer is under way or was given."""
        in_body = self._reading_message and not self._reading_head
        self._reading_head = False
        if self.cycle is not None and (in_body or not self.cycle.response_complete):
            self.drop()
        else:
            super().send_400_response(msg)

    def _count_head(self, size: int) -> None:
        """The parser itself has no limit; what is raised here it reports as a malformed request."""
        self._head_bytes += size
        if self._head_bytes > self._crowd.limits.header_bytes:
            raise ValueError("the headers are too long")

    def _silence(self) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True

    def _busy(self) -> bool:
        """Whether an answer is owed, or given but not yet taken by the kernel."""
        owed = self.cycle is not None and not self.cycle.response_complete
        transports = (self._raw, self.transport)
        return owed or any(one.is_closing() or one.get_write_buffer_size() > 0 for one in transports)

    def _enter(self, phase: Phase) -> None:
        limits = self._crowd.limits
        seconds = {
            Phase.ASKING: limits.request_seconds,
            Phase.ANSWERING: limits.response_seconds,
            Phase.IDLE: limits.idle_seconds,
        }[phase]
        self.phase = phase
        self._crowd.requeue(self)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._expired)

    def _expired(self) -> None:
        if self.phase is Phase.ANSWERING and not self._busy():
            self._enter(Phase.IDLE)
        else:
            self.drop()

    def _leave(self) -> None:
        self._crowd.forget(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
