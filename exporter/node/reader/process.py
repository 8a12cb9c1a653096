"""One reader child as its parent sees it: started, asked, listened to with a deadline, and put down."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence

import msgspec

from exporter.node.devices.readings import ReaderConfig
from exporter.node.reader.protocol import PIPE_BYTES, Answer, FrameBuffer, GarbledError, Request, frame

KILL_WAIT = 0.5
"""Seconds that a killed child may take to go; one stuck in the kernel is left behind until it can be reaped."""


class CrashedError(Exception):
    """The child has ended by itself; the message says how."""


class Child:
    """A process and its two pipes. Not for use by two threads at once."""

    def __init__(self, command: Sequence[str], config: ReaderConfig) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C in a terminal is for the parent
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        for pipe in (self._to, self._from):
            os.set_blocking(pipe.fileno(), False)
        self._unsent = bytearray(frame(msgspec.msgpack.encode(config)))
        self._received = FrameBuffer()
        self._decode = msgspec.msgpack.Decoder(Answer).decode
        self._number = 0
        self.started_at = time.monotonic()
        self.asked_at: float | None = None
        """When the request that waits for its answer was made; None when there is none."""
        self.has_answered = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self) -> None:
        """Queues one request; `listen` sends it."""
        self._number += 1
        self._unsent += frame(msgspec.msgpack.encode(Request(self._number)))
        self.asked_at = time.monotonic()

    def listen(self, until: float, wake: int) -> Answer | None:
        """The answer to the last request; None at the time `until` (monotonic) or once `wake` is readable.

        Raises CrashedError, or GarbledError for anything that is not that answer.
        """
        while (body := self._received.next()) is None:
            ready = self._poll(until, wake)
            if not ready or wake in ready:
                return None
            self._move(ready)
        return self._answer(body)

    def stop(self, grace: float) -> bool:
        """Closes the pipes, kills what is still there after `grace` seconds; False if not even that ended it."""
        self._to.close()
        ended = self._ends_within(grace) if grace > 0 else False
        if not ended:
            self._process.kill()
            ended = self._ends_within(KILL_WAIT)
        self._from.close()
        return ended

    def reaped(self) -> bool:
        """Whether a child left behind has gone meanwhile."""
        return self._process.poll() is not None

    def _poll(self, until: float, wake: int) -> dict[int, int]:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._from, select.POLLIN)
        if self._unsent:
            poll.register(self._to, select.POLLOUT)
        left = until - time.monotonic()
        return dict(poll.poll(max(left, 0.0) * 1000))

    def _move(self, ready: dict[int, int]) -> None:
        if self._to.fileno() in ready:
            try:
                del self._unsent[: os.write(self._to.fileno(), self._unsent)]
            except BrokenPipeError:
                raise CrashedError(self._epitaph()) from None
        if self._from.fileno() in ready:
            data = os.read(self._from.fileno(), PIPE_BYTES)
            if not data:
                raise CrashedError(self._epitaph())
            self._received.feed(data)

    def _answer(self, body: bytes) -> Answer:
        try:
            answer = self._decode(body)
        except msgspec.MsgspecError as error:
            raise GarbledError(f"the reader child's answer cannot be decoded: {error}") from error
        if answer.id != self._number or self.asked_at is None:
            raise GarbledError(f"the reader child answered request {answer.id}, asked was {self._number}")
        self.asked_at, self.has_answered = None, True
        return answer

    def _epitaph(self) -> str:
        self._ends_within(KILL_WAIT)
        code = self._process.poll()
        if code is None:
            return "the reader child closed its pipe"
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return f"the reader child {self.pid} ended {how}"

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
