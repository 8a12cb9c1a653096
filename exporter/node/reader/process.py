"""Handles one reader process for its parent process: starts it, sends requests, receives replies, stops it.

The reader process loads the native libraries (see __main__.py). Nothing here waits longer than its caller allows, even
when that process hangs.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence

import msgspec

from exporter.node.devices.fields.device_source import ReaderConfig, WantedField
from exporter.node.devices.readings.readings import XidReport
from exporter.node.reader.protocol import (
    ENDING,
    PIPE_BYTES,
    FrameBuffer,
    ProtocolError,
    ReaderReply,
    ReaderRequest,
    frame,
)

KILL_SECONDS = 0.5
"""How long to wait for a killed process to end. One in uninterruptible sleep (a driver call that hangs in the kernel)
handles SIGKILL only when that call returns; it is left behind until it can be reaped."""


class ReaderCrashedError(Exception):
    """The reader process has ended by itself. The message has its signal or exit status."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """Its exit status; None where there is none."""


class ReaderProcess:
    """A reader process and the two pipes to it. Not thread-safe."""

    def __init__(self, command: Sequence[str], config: ReaderConfig) -> None:
        """Start the process; `config` is sent with the first request. Raises OSError when it cannot be started."""
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # bytes in a buffer of Python's would not make the descriptor readable for poll
            start_new_session=True,  # Ctrl-C in a terminal signals the parent process alone, which then closes the pipe
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        for pipe in (self._stdin, self._stdout):
            # O_NONBLOCK: a process that hangs in the middle of a message must not block us. It applies to our end of
            # the pipe alone; the reader process's end is another open file.
            os.set_blocking(pipe.fileno(), False)
        self._unsent = bytearray(frame(msgspec.msgpack.encode(config)))
        self._fields = config.fields
        self._received = FrameBuffer()
        self._decode = msgspec.msgpack.Decoder(ReaderReply).decode
        self._request_id = 0
        self.requested_at: float | None = None
        """When the request that has no reply yet was made; None when every request has one."""
        self.has_read = False
        """Whether a reply had readings; until then the process may still be opening its source."""
        self.xids_left: tuple[XidReport, ...] = ()
        """What a process that ended by itself has handed over."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def request(self, fields: tuple[WantedField, ...]) -> None:
        """Queue one request for these fields, which are sent only where they are others; `receive` sends it."""
        self._request_id += 1
        changed = None if fields == self._fields else fields
        self._unsent += frame(msgspec.msgpack.encode(ReaderRequest(self._request_id, changed)))
        self._fields = fields
        self.requested_at = time.monotonic()

    def receive(self, until: float, wake: int) -> ReaderReply | None:
        """Wait for the reply to the last request, and send what is queued meanwhile.

        Returns None when the monotonic time `until` has come or the descriptor `wake` is readable. Raises
        ReaderCrashedError when the process has ended, and ProtocolError for anything that is not that reply.
        """
        while (reply := self._next_reply()) is None:
            ready = self._poll(until, wake)
            if not ready or wake in ready:
                return None
            self._transfer(ready)
        return reply

    def stop(self, grace: float) -> bool:
        """Close the pipes, which ends the process, and kill it if it still runs after `grace` seconds.

        Returns whether it has ended: one in uninterruptible sleep has not.
        """
        self._stdin.close()
        ended = self._ends_within(grace) if grace > 0 else False
        if not ended:
            self._process.kill()
            ended = self._ends_within(KILL_SECONDS)
        self._stdout.close()
        return ended

    def reap(self) -> bool:
        """Free the kernel's entry of the process if it has ended (waitpid). Returns whether it has."""
        return self._process.poll() is not None

    def _poll(self, until: float, wake: int) -> dict[int, int]:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._stdout, select.POLLIN)
        if self._unsent:
            poll.register(self._stdin, select.POLLOUT)
        remaining = until - time.monotonic()
        return dict(poll.poll(max(remaining, 0.0) * 1000))

    def _transfer(self, ready: dict[int, int]) -> None:
        """Write to and read from the pipes that are ready. Raises ReaderCrashedError when the other end is closed."""
        if self._stdin.fileno() in ready:
            try:
                del self._unsent[: os.write(self._stdin.fileno(), self._unsent)]
            except BrokenPipeError:  # Python ignores SIGPIPE from its start, so a closed pipe is EPIPE
                raise self._crashed() from None
        if self._stdout.fileno() in ready:
            data = os.read(self._stdout.fileno(), PIPE_BYTES)
            if not data:
                raise self._crashed()
            self._received.feed(data)

    def _next_reply(self) -> ReaderReply | None:
        """Return the reply to the last request if all of it has arrived. Raises ProtocolError."""
        while (body := self._received.next()) is not None:
            if (reply := self._reply(body)) is not None:
                return reply
        return None

    def _reply(self, body: bytes) -> ReaderReply | None:
        try:
            reply = self._decode(body)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"the reader process's reply cannot be decoded: {error}") from error
        if reply.id == ENDING:
            self.xids_left = reply.xids
            return None
        if reply.id != self._request_id or self.requested_at is None:
            raise ProtocolError(f"the reader process replied to request {reply.id}, the last was {self._request_id}")
        self.requested_at = None
        self.has_read = self.has_read or reply.readings is not None
        return reply

    def _crashed(self) -> ReaderCrashedError:
        self._ends_within(KILL_SECONDS)  # a process closes its pipes a moment before its status is known
        self._take_last()
        code = self._process.poll()
        if code is None:
            return ReaderCrashedError("the reader process closed its pipe")
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return ReaderCrashedError(f"the reader process {self.pid} ended {how}", code)

    def _take_last(self) -> None:
        """Take what an ended process has written last. A reply comes too late; its XIDs are handed over again."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._stdout.fileno(), PIPE_BYTES):
                self._received.feed(data)
        with contextlib.suppress(ProtocolError):
            while self._next_reply() is not None:
                continue

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
