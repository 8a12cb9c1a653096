"""Frames between a parent and its reader child: four bytes of length, big-endian, then msgpack.

The parent sends one ReaderConfig, then requests; the child answers each by its number, in order.
"""

import os
import struct

import msgspec

from exporter.node.devices.readings import Readings

FRAME_LIMIT = 64 * 1024 * 1024
"""Bytes; a longer frame means that something else than our child writes to the pipe."""

PIPE_BYTES = 64 * 1024
"""What a pipe holds, and so the most that one read of it gives."""

_HEAD = struct.Struct(">I")


class Request(msgspec.Struct, frozen=True, array_like=True):
    """Read once, now."""

    id: int


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """Readings, or why there are none: `reason` as SourceError has it."""

    id: int
    readings: Readings | None = None
    reason: str = ""
    message: str = ""


class GarbledError(Exception):
    """What came through the pipe is not a frame of ours."""


def frame(body: bytes) -> bytes:
    """A body with its length in front. Raises GarbledError when it is over the limit."""
    if len(body) > FRAME_LIMIT:
        raise GarbledError(f"a frame of {len(body)} bytes is over the limit of {FRAME_LIMIT}")
    return _HEAD.pack(len(body)) + body


class FrameBuffer:
    """Collects bytes as they come and gives whole frame bodies."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> bytes | None:
        """The next whole body, or None until more bytes come. Raises GarbledError on a length over the limit."""
        if len(self._bytes) < _HEAD.size:
            return None
        (length,) = _HEAD.unpack_from(self._bytes)
        if length > FRAME_LIMIT:
            raise GarbledError(f"a frame announces {length} bytes, over the limit of {FRAME_LIMIT}")
        end = _HEAD.size + length
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[_HEAD.size : end])
        del self._bytes[:end]
        return body


def read_frame(descriptor: int) -> bytes | None:
    """Blocks for one body; None at the end of the stream, whole or in the middle of a frame."""
    head = _read_exactly(descriptor, _HEAD.size)
    if head is None:
        return None
    (length,) = _HEAD.unpack(head)
    if length > FRAME_LIMIT:
        raise GarbledError(f"a frame announces {length} bytes, over the limit of {FRAME_LIMIT}")
    return _read_exactly(descriptor, length)


def write_frame(descriptor: int, body: bytes) -> None:
    """Writes one frame whole, however long that takes."""
    rest = memoryview(frame(body))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _read_exactly(descriptor: int, length: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < length:
        part = os.read(descriptor, min(length - len(parts), PIPE_BYTES))
        if not part:
            return None
        parts += part
    return bytes(parts)
