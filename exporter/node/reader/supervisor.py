"""The parent's side of the reader: a source that survives whatever the native libraries do.

The child is started with the first read, killed when it does not answer in time, and started again after a pause
that doubles from 1 to 30 seconds.
"""

import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from exporter.node.devices.readings import ReaderConfig, Readings
from exporter.node.reader.process import Child, CrashedError
from exporter.node.reader.protocol import Answer, GarbledError
from exporter.source import SourceError

COMMAND = (sys.executable, "-P", "-m", "exporter.node.reader")
FRESH_PROCESS = frozenset({"driver_mismatch", "no_devices", "engine_dead"})
"""Reasons that only a new process can cure: a library keeps the driver, or the engine, that it first saw."""

STEADY = 60.0
"""Seconds after which a child's death counts as a first one again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take, in seconds. `opening` is for a child's first answer: an engine has to start."""

    deadline: float = 10.0
    opening: float = 60.0
    first_pause: float = 1.0
    longest_pause: float = 30.0
    goodbye: float = 1.2


class Reader:
    """Device readings out of a child process.

    `read` never takes longer than four fifths of the interval, or than the deadline: a child that needs longer is
    left working (`starting`, `slow`) until its deadline, then killed (`hung`). Other reasons of its own:
    `crashed`, `garbled`, `restarting`, `closed`; every other reason is the source's.
    """

    def __init__(
        self, config: ReaderConfig, patience: Patience | None = None, command: Sequence[str] = COMMAND
    ) -> None:
        self._config, self._command = config, command
        self._patience = patience or Patience()
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closed = False
        self._child: Child | None = None
        self._left_behind: list[Child] = []
        self._pause = self._patience.first_pause
        self._not_before = 0.0
        self._last_failure = ""
        self._starts = 0
        self._chosen: str = "dcgm" if config.source == "auto" else config.source

    @property
    def name(self) -> str:
        """The configured source; with `auto`, the one that answered last (`dcgm`, the first choice, until then)."""
        return self._chosen

    @property
    def pid(self) -> int | None:
        """Of the child that runs now."""
        child = self._child
        return None if child is None else child.pid

    @property
    def restarts(self) -> int:
        """How many children were started after the first."""
        return max(self._starts - 1, 0)

    def read(self) -> Readings:
        """What the devices say now. Raises SourceError."""
        with self._lock:
            if self._closed:
                raise SourceError("closed", "the reader is closed")
            child = self._child or self._start()
            try:
                return self._readings(self._answer(child))
            except CrashedError as error:
                raise self._failed(child, "crashed", str(error)) from None
            except GarbledError as error:
                raise self._failed(child, "garbled", str(error)) from None

    def close(self) -> None:
        """Ends the child, within two seconds even when it hangs; a read under way ends with `closed`."""
        if self._closed:
            return
        self._closed = True
        os.eventfd_write(self._wake, 1)
        with self._lock:
            os.close(self._wake)
            child, self._child = self._child, None
            if child is not None:
                child.stop(self._patience.goodbye)
            for left in self._left_behind:
                left.reaped()

    def _start(self) -> Child:
        self._left_behind = [left for left in self._left_behind if not left.reaped()]
        wait = self._not_before - time.monotonic()
        if wait > 0:
            raise SourceError("restarting", f"{self._last_failure}; a new one starts in {wait:.0f} s")
        try:
            self._child = Child(self._command, self._config)
        except OSError as error:
            self._put_off(f"the reader child cannot be started: {error}")
            raise SourceError("crashed", self._last_failure) from error
        self._starts += 1
        return self._child

    def _answer(self, child: Child) -> Answer:
        began = time.monotonic()
        end = began + min(self._config.interval * 0.8, self._patience.deadline)
        while True:
            if child.asked_at is None:
                child.ask()
            asked = child.asked_at or began
            last = asked + (self._patience.deadline if child.has_answered else self._patience.opening)
            was_opening = not child.has_answered
            answer = child.listen(min(end, last), self._wake)
            if answer is None:
                raise self._unanswered(child, last, was_opening=was_opening)
            # An answer to a question of an earlier pass may be older than an interval: then ask anew.
            if asked >= began or time.monotonic() - asked <= self._config.interval:
                return answer

    def _unanswered(self, child: Child, last: float, *, was_opening: bool) -> SourceError:
        if self._closed:
            return SourceError("closed", "the reader was closed during a read")
        if time.monotonic() >= last:
            return self._failed(child, "hung", f"the reader child {child.pid} did not answer in time and was killed")
        if was_opening:
            return SourceError("starting", "the reader child is still opening its source")
        return SourceError("slow", "the reader child has not answered yet")

    def _readings(self, answer: Answer) -> Readings:
        if answer.readings is not None:
            self._chosen = answer.readings.source
            return answer.readings
        if answer.reason in FRESH_PROCESS and self._child is not None:
            raise self._failed(self._child, answer.reason, answer.message)
        raise SourceError(answer.reason, answer.message)

    def _failed(self, child: Child, reason: str, message: str) -> SourceError:
        """Puts the child down, plans the next one, and gives the error to raise."""
        self._child = None
        if time.monotonic() - child.started_at >= STEADY:
            self._pause = self._patience.first_pause
        if not child.stop(grace=0.0):
            self._left_behind.append(child)
        self._put_off(message)
        return SourceError(reason, message)

    def _put_off(self, failure: str) -> None:
        self._last_failure = failure
        self._not_before = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, self._patience.longest_pause)
