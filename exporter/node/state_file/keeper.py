"""Decides when the state file is read and written, so that the collection loop never waits for a disk.

It is written in a thread: at once when a GPU has come or was forgotten, and otherwise once a minute if anything has
changed. What others change in it, such as `gpugauge forget`, is taken up by the next collection.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from exporter.background import Starter, in_background
from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.node.state_file.content import RememberedNode
from exporter.node.state_file.file import StateFile
from exporter.node.state_file.reasons import SOURCE, StateFileError, StateFileReason
from exporter.snapshot import SourceProblem

logger = logging.getLogger(__name__)

WRITE_SECONDS = 60.0
"""Least time between two writes for anything but a change of the GPUs: as much can be lost when the process is killed
or the machine fails."""
HUNG_SECONDS = 30.0
"""How long a write may take before it is a problem."""
CLOSE_SECONDS = 1.0
"""How long `close` waits for a write that has begun."""


class StateChange(NamedTuple):
    """What somebody else has changed in the file."""

    state: RememberedNode
    forgotten: frozenset[str]
    """The UUIDs of GPUs that were in the file and are no longer."""


class StateKeeper:
    """Keeps the state of the node in its file. `take_up` and `keep` are for the collection loop's thread.

    While the file cannot be read it is not written either: what is in it may be worth repairing.
    """

    def __init__(
        self,
        path: Path,
        *,
        simulated: bool,
        clock: Callable[[], float] = time.monotonic,
        start: Starter | None = None,
    ) -> None:
        """`simulated` is whether the GPUs are those of a scenario; `clock` must be monotonic.

        `start` runs the writes, by default in a thread: a broken disk can block for ever.
        """
        self._simulated, self._clock, self._start = simulated, clock, start or in_background("state-file")
        self._file = StateFile(path, simulated=simulated)
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._idle = threading.Event()
        """Clear while the thread that writes has `_file`, `_backoff`, `_written` and `_failure` for itself."""
        self._idle.set()
        self._began = self._wrote_at = float("-inf")
        self._written: RememberedNode | None = None
        """What the file has, as far as that is known."""
        self._latest: RememberedNode | None = None
        self._failure: StateFileError | None = None

    def load(self) -> RememberedNode:
        """What is remembered from before; nothing where there is no file or it cannot be read."""
        return self._read() or RememberedNode(simulated=self._simulated)

    def take_up(self) -> StateChange | None:
        """What somebody else has changed since the file was read or written here last; None for nothing."""
        if not self._idle.is_set() or not self._file.changed():
            return None
        before = self._written.uuids if self._written is not None else frozenset()
        state = self._read()
        return None if state is None else StateChange(state, before - state.uuids)

    def keep(self, state: RememberedNode) -> None:
        """Remember this state, and write it if that is due."""
        self._latest = state
        if self._idle.is_set() and self._due(state):
            self._idle.clear()
            self._began = self._clock()
            self._start(self._write_latest)

    def problem(self) -> SourceProblem | None:
        """What is wrong with the file now."""
        failure = self._failure
        if not self._idle.is_set() and self._clock() - self._began > HUNG_SECONDS:
            message = f"{self._file.path}: a write has not ended for {HUNG_SECONDS:.0f} s"
            failure = StateFileError(StateFileReason.UNWRITABLE, message)
        return None if failure is None else SourceProblem(SOURCE, failure.reason, str(failure))

    def close(self) -> None:
        """Write the state that was given last; bounded in time unless the disk hangs."""
        if not self._idle.wait(CLOSE_SECONDS):
            logger.warning("%s: a write has not ended, so the state of the last minute is lost", self._file.path)
        elif self._latest is not None and self._latest != self._written and not self._unreadable():
            self._write_latest()
            if self._failure is not None:
                logger.warning("%s", self._failure)

    def _unreadable(self) -> bool:
        return self._failure is not None and self._failure.reason is StateFileReason.UNREADABLE

    def _due(self, state: RememberedNode) -> bool:
        if self._unreadable() or not self._backoff.due or state == self._written:
            return False
        urgent = self._written is None or state.gpus != self._written.gpus
        return urgent or self._clock() - self._wrote_at >= WRITE_SECONDS

    def _read(self) -> RememberedNode | None:
        try:
            self._written, self._failure = self._file.read(), None
        except StateFileError as error:
            self._written, self._failure = None, error
        return self._written

    def _write_latest(self) -> None:
        """Write the state; if somebody else has changed the file, nothing: it is taken up first."""
        state = self._latest
        try:
            if state is not None and self._file.write(state):
                self._written, self._failure, self._wrote_at = state, None, self._clock()
                self._backoff.reset()
        except StateFileError as error:
            self._failure = error
            self._backoff.failed()
        finally:
            self._idle.set()
