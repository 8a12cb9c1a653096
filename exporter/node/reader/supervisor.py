"""Runs DCGM or NVML in a child process, the reader process, so that their crashes and hangs do not end the exporter.

This is the parent process's side: `Reader.read` returns `Readings` (devices and samples), or raises SourceError. The
reader process is started for the first read, and killed when it does not reply in time, sends anything but a reply, or
reports a failure that only a new process can end. The next one starts after a pause that doubles with each failure; a
process that ran for a minute makes it the first pause again.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from exporter.backoff import Backoff
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.fields.device_source import ReaderConfig, WantedField
from exporter.node.devices.fields.validity import readings_age_limit
from exporter.node.devices.readings.readings import Readings, XidReport
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.reader.process import ReaderCrashedError, ReaderProcess
from exporter.node.reader.protocol import ProtocolError, ReaderReply
from exporter.node.reader.reasons import ReaderReason
from exporter.node.reader.unbound import UNBOUND_STATUS
from exporter.source import SourceError

# Without -P, Python would look for modules in the current folder first.
COMMAND = (sys.executable, "-P", "-m", "exporter.node.reader")
NEW_PROCESS_NEEDED = frozenset({NvmlReason.DRIVER_MISMATCH, DcgmReason.NO_DEVICES, DcgmReason.ENGINE_DEAD})
"""Reasons that only a new process ends: NVML stays bound to the driver, and the embedded engine to the devices, that it
found when it was loaded."""
STEADY_SECONDS = 60.0
"""When a reader process ran at least this long, the pause after its failure is the first one again."""


_UNBOUND = "the driver was unbound from a GPU, and the reader process has ended, so that no GPU is kept open"


@dataclass(frozen=True, slots=True)
class ReaderTimings:
    """Deadlines and pauses of a reader process, in seconds."""

    deadline: float = 10.0
    """For a reply; then the reader process is killed."""
    opening: float = 60.0
    """For the first readings of a process, because an embedded engine has to start; then the process is killed."""
    first_pause: float = 1.0
    """Before the next process is started after a failure."""
    longest_pause: float = 30.0
    """The limit up to which that pause doubles."""
    unbound: float = 10.0
    """Before the next process is started after the driver was unbound from a GPU, which is not to be opened again."""
    grace: float = 1.2
    """For the process to end after its pipe was closed."""


class Reader:
    """A source of device readings that reads in another process.

    `read` takes at most four fifths of the interval, and at most the deadline. A reader process that needs longer goes
    on (`starting`, `slow`) until its deadline and is killed then (`hung`). What it read too late is the result of the
    next read if that has no fresher one, with the problem `slow`. Other reasons of the reader itself are `crashed`,
    `driver_unbound`, `garbled`, `restarting` and `closed`; all others are those of the source that it reads.
    """

    def __init__(
        self,
        config: ReaderConfig,
        timings: ReaderTimings | None = None,
        command: Sequence[str] = COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`command` starts a reader process. `clock` is for pauses and for how long a choice has been suspect.

        Deadlines use time.monotonic.
        """
        self._config, self._command = config, command
        self._timings, self._clock = timings or ReaderTimings(), clock
        self._lock = threading.Lock()  # one thread reads, another one may close
        # An eventfd ends a poll in `read` from another thread, which a lock or an event of Python's cannot. It is never
        # read from, so that it stays readable. EFD_CLOEXEC: a reader process must not inherit it.
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closed = False
        self._process: ReaderProcess | None = None
        self._unreaped: list[ReaderProcess] = []
        """Killed processes that have not ended yet."""
        self._backoff = Backoff(self._timings.first_pause, self._timings.longest_pause, clock)
        self._last_failure = ""
        self._unbound_until = float("-inf")
        self._starts = 0
        self._started_at = 0.0
        self._source_name = config.first_source
        self._late_xids: list[XidReport] = []

    @property
    def name(self) -> str:
        """The configured source; with `auto`, the one that answered last (its first choice until then)."""
        return self._source_name

    @property
    def pid(self) -> int | None:
        """The process id of the current reader process, if there is one."""
        process = self._process
        return None if process is None else process.pid

    @property
    def restarts(self) -> int:
        """How many reader processes were started after the first."""
        return max(self._starts - 1, 0)

    def read(self) -> Readings:
        """Read the devices once. Raises SourceError."""
        with self._lock:
            if self._closed:
                raise SourceError(ReaderReason.CLOSED, "the reader is closed")
            process = self._process or self._start()
            try:
                return self._readings(self._await_reply(process))
            except ReaderCrashedError as error:
                raise self._crashed(process, error) from None
            except ProtocolError as error:
                raise self._killed(process, ReaderReason.GARBLED, str(error)) from None

    def want(self, fields: tuple[WantedField, ...]) -> None:
        """Read these fields from the next read on; the reader process stays."""
        self._config = msgspec.structs.replace(self._config, fields=fields)

    def close(self) -> None:
        """End the reader process within two seconds, even when it hangs; a read in progress raises `closed`."""
        if self._closed:
            return
        self._closed = True
        os.eventfd_write(self._wake, 1)
        with self._lock:
            os.close(self._wake)
            process, self._process = self._process, None
            if process is not None:
                process.stop(self._timings.grace)
            for killed in self._unreaped:
                killed.reap()

    def _start(self) -> ReaderProcess:
        self._unreaped = [killed for killed in self._unreaped if not killed.reap()]
        if (rest := self._unbound_until - self._clock()) > 0:
            raise SourceError(ReaderReason.DRIVER_UNBOUND, f"{_UNBOUND}; GPUs are opened again in {rest:.0f} s")
        if not self._backoff.due:
            wait = self._backoff.remaining
            raise SourceError(ReaderReason.RESTARTING, f"{self._last_failure}; a new one starts in {wait:.0f} s")
        try:
            self._process = ReaderProcess(self._command, self._config)
        except OSError as error:
            self._note_failure(f"the reader process cannot be started: {error}")
            raise SourceError(ReaderReason.CRASHED, self._last_failure) from error
        self._starts += 1
        self._started_at = self._clock()
        return self._process

    def _await_reply(self, process: ReaderProcess) -> ReaderReply:
        """Wait for the reply to this read; without it, return a late one. Raises SourceError when there is neither."""
        began = time.monotonic()
        end = began + min(self._config.interval * 0.8, self._timings.deadline)
        late, late_since = None, 0.0
        while True:
            if process.requested_at is None:
                process.request(self._config.fields)
            requested_at = process.requested_at or began
            opening = not process.has_read
            deadline = requested_at + (self._timings.opening if opening else self._timings.deadline)
            reply = process.receive(min(end, deadline), self._wake)
            if reply is None:
                if late is not None and not self._closed and self._is_fresh(late_since):
                    return _with_problem(late)
                raise self._error_without_reply(process, deadline, opening=opening)
            self._config = msgspec.structs.replace(self._config, choice=reply.choice)
            if requested_at >= began:
                return reply
            # The reply to an earlier read: the one to a new request may come in time, and be fresher.
            late, late_since = self._without_xids(reply), requested_at

    def _without_xids(self, reply: ReaderReply) -> ReaderReply:
        """Keep the XIDs of a late reply, which may not be returned, for the next readings: each is reported once."""
        if reply.readings is None:
            return reply
        self._late_xids += reply.readings.xids
        return msgspec.structs.replace(reply, readings=msgspec.structs.replace(reply.readings, xids=()))

    def _is_fresh(self, requested_at: float) -> bool:
        return time.monotonic() - requested_at <= readings_age_limit(self._config.interval)

    def _error_without_reply(self, process: ReaderProcess, deadline: float, *, opening: bool) -> SourceError:
        """Return the error to raise for a read without a reply; after the deadline, kill the process."""
        if self._closed:
            return SourceError(ReaderReason.CLOSED, "the reader was closed during a read")
        if time.monotonic() >= deadline:
            message = f"the reader process {process.pid} did not reply in time and was killed"
            return self._killed(process, ReaderReason.HUNG, message)
        if opening:
            return SourceError(ReaderReason.STARTING, "the reader process is still opening its source")
        return SourceError(ReaderReason.SLOW, "the reader process has not replied yet")

    def _readings(self, reply: ReaderReply) -> Readings:
        if reply.readings is not None:
            self._source_name = reply.readings.source
            late, self._late_xids = self._late_xids, []
            return msgspec.structs.replace(reply.readings, xids=(*late, *reply.readings.xids))
        if reply.reason in NEW_PROCESS_NEEDED and self._process is not None:
            raise self._killed(self._process, reply.reason, reply.message)
        raise SourceError(reply.reason, reply.message)

    def _crashed(self, process: ReaderProcess, error: ReaderCrashedError) -> SourceError:
        """Handle a process that has ended, and return the error to raise. To have let go of a GPU is no failure."""
        self._late_xids += process.xids_left
        if error.status != UNBOUND_STATUS:
            return self._killed(process, ReaderReason.CRASHED, str(error))
        self._process = None
        process.stop(grace=0.0)
        self._unbound_until = self._clock() + self._timings.unbound
        return SourceError(ReaderReason.DRIVER_UNBOUND, _UNBOUND)

    def _killed(self, process: ReaderProcess, reason: str, message: str) -> SourceError:
        """Kill the process, set the time of the next start, and return the error to raise."""
        self._process = None
        if self._clock() - self._started_at >= STEADY_SECONDS:
            self._backoff.reset()
        if not process.stop(grace=0.0):
            self._unreaped.append(process)
        self._suspect_choice()
        self._note_failure(message)
        return SourceError(reason, message)

    def _suspect_choice(self) -> None:
        """Note that the source that `auto` had chosen fails from now on: the killed process could not say so itself."""
        choice = self._config.choice
        if choice is not None and choice.chosen is not None and choice.suspect_since is None:
            suspect = msgspec.structs.replace(choice, suspect_since=self._clock())
            self._config = msgspec.structs.replace(self._config, choice=suspect)

    def _note_failure(self, failure: str) -> None:
        self._last_failure = failure
        self._backoff.failed()


def _with_problem(late: ReaderReply) -> ReaderReply:
    """Return a late reply with the problem `slow`; one without readings has a reason already."""
    if late.readings is None:
        return late
    message = "the reader process needs longer than four fifths of the interval; what it read last is exposed"
    problems = (*late.readings.problems, (ReaderReason.SLOW, message))
    return msgspec.structs.replace(late, readings=msgspec.structs.replace(late.readings, problems=problems))
