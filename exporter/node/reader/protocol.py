"""The protocol between the parent process and the reader process: length-prefixed msgpack messages on two pipes.

The parent process sends one ReaderConfig, then ReaderRequests. The reader process sends one ReaderReply for each
request, in the order of the requests. Where it ends by itself, one more may follow, with what no reply has had.
"""

import contextlib
import os
import struct
import threading

import msgspec

from exporter.node.devices.fields.device_source import SourceChoice, WantedField
from exporter.node.devices.readings.readings import Readings, XidReport

FRAME_LIMIT = 64 * 1024 * 1024
"""Largest body in bytes. A larger length was not written by our own code, such as text that a library printed."""

PIPE_BYTES = 64 * 1024
"""Capacity of a pipe on Linux unless it is changed (pipe(7)): one `read` never returns more."""

ENDING = 0
"""The id of a reply to no request: the process ends. Requests are numbered from 1."""

_LENGTH = struct.Struct(">I")
"""A pipe is a stream: a read may end inside a message. So each message is preceded by its length, big-endian."""


class ReaderRequest(msgspec.Struct, frozen=True, array_like=True):
    """A request for one read of the source."""

    id: int
    fields: tuple[WantedField, ...] | None = None
    """The fields to read from now on; None where they are those of before."""


class ReaderReply(msgspec.Struct, frozen=True, array_like=True):
    """The readings of one request, or why there are none: `reason` and `message` are those of the SourceError."""

    id: int
    """The id of the request."""
    readings: Readings | None = None
    reason: str = ""
    message: str = ""
    choice: SourceChoice | None = None
    """What the source `auto` has chosen."""
    xids: tuple[XidReport, ...] = ()
    """Of a process that ends: the XIDs that no reply has had, and perhaps some that one had."""


class ProtocolError(Exception):
    """Bytes on a pipe do not follow the protocol."""


def frame(body: bytes) -> bytes:
    """Prefix a body with its length. Raises ProtocolError when it is over the limit."""
    return _LENGTH.pack(_checked(len(body))) + body


class FrameBuffer:
    """Collects bytes as they arrive and returns complete bodies."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> bytes | None:
        """Remove and return the next body; None until all of it has arrived.

        Raises ProtocolError on a length over the limit, before any byte of the body has arrived.
        """
        if len(self._bytes) < _LENGTH.size:
            return None
        end = _LENGTH.size + _checked(*_LENGTH.unpack_from(self._bytes))
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[_LENGTH.size : end])
        del self._bytes[:end]
        return body


class ReplyPipe:
    """The pipe of the replies, as the reader process writes to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, body: bytes) -> None:
        """Write one frame, however long that takes."""
        with self._lock:
            write_frame(self._descriptor, body)

    def write_last(self, body: bytes) -> None:
        """Write the last frame, from any thread and without waiting: not while a reply is written that nobody reads."""
        if not self._lock.acquire(blocking=False):
            return
        os.set_blocking(self._descriptor, False)
        with contextlib.suppress(OSError):
            os.write(self._descriptor, frame(body))


def read_frame(descriptor: int) -> bytes | None:
    """Read one body from a blocking descriptor. Returns None at the end of the stream, also inside a frame.

    Raises ProtocolError on a length over the limit.
    """
    prefix = _read_exactly(descriptor, _LENGTH.size)
    return None if prefix is None else _read_exactly(descriptor, _checked(*_LENGTH.unpack(prefix)))


def write_frame(descriptor: int, body: bytes) -> None:
    """Write one frame to a blocking descriptor, however long that takes."""
    rest = memoryview(frame(body))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _checked(length: int) -> int:
    if length > FRAME_LIMIT:
        raise ProtocolError(f"a frame of {length} bytes is over the limit of {FRAME_LIMIT}")
    return length


def _read_exactly(descriptor: int, length: int) -> bytes | None:
    received = bytearray()
    while len(received) < length:
        data = os.read(descriptor, min(length - len(received), PIPE_BYTES))
        if not data:
            return None
        received += data
    return bytes(received)
