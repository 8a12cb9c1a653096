"""Writes the audit log in a thread of its own, so that no collection waits for a disk.

Observations wait in a queue. While nothing can be written, the thread takes no more of them, and once the queue is full
the newest ones are lost: the ledger makes a gap of that. What an observation made of lines is written before the next
one is taken.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.node.audit.chain import Chain, new_chain_id
from exporter.node.audit.ledger import Ledger
from exporter.node.audit.observation import AuditObservation
from exporter.node.audit.output import AuditOutput, Opened
from exporter.node.audit.reasons import SOURCE, AuditLogError, AuditReason
from exporter.snapshot import SourceProblem

logger = logging.getLogger(__name__)

MAX_WAITING = 1024
"""How many observations wait at most: eight hours at the usual interval."""
SYNC_SECONDS = 5.0
"""How often at most lines are brought to the disk: a crash of the machine costs so much."""
HUNG_SECONDS = 30.0
"""How long a write may take before it is a problem."""
CLOSE_SECONDS = 1.0
"""How long `close` waits for what is left to be written."""


class AuditWriter:
    """Makes lines of observations and writes them. `put`, `problem` and `close` are for the collection loop's thread.

    `step` does the work, in a thread that `start` begins.
    """

    def __init__(
        self,
        output: AuditOutput,
        node: str,
        longest: float,
        annotations: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`node` is its name; `longest` as in Ledger; `clock` must be monotonic, `wall` gives Unix seconds."""
        self._output, self._node, self._longest, self._annotations = output, node, longest, annotations
        self._clock, self._wall = clock, wall
        self._waiting: deque[AuditObservation] = deque()
        self._lost = False
        """Whether an observation was lost since the last one that waits."""
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._ledger: Ledger | None = None
        self._pending = b""
        """Lines that are not written yet."""
        self._synced_at, self._unsynced = float("-inf"), False
        self._unrotated = False
        """Whether more than the beginning of a file was written: a file of that alone is not rotated."""
        self._busy_since: float | None = None
        self._failure: AuditLogError | None = None
        self._stopping, self._due = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self.failures = 0
        """How many attempts to write failed."""
        self.wrote_at: float | None = None
        """When a line was written last, in Unix seconds."""

    def start(self) -> None:
        """Begin the thread."""
        self._thread.start()

    def put(self, observation: AuditObservation) -> None:
        """Let an observation be written; never waits."""
        if len(self._waiting) >= MAX_WAITING:
            self._lost = True
        else:
            self._waiting.append(replace(observation, lost=self._lost))
            self._lost = False
        self._due.set()

    def problems(self) -> tuple[SourceProblem, ...]:
        """What is wrong with the log now."""
        failure, began = self._failure, self._busy_since
        if began is not None and self._clock() - began > HUNG_SECONDS:
            message = f"{self._output.name}: a write has not ended for {HUNG_SECONDS:.0f} s"
            failure = AuditLogError(AuditReason.UNWRITABLE, message)
        found = [] if failure is None else [SourceProblem(SOURCE, failure.reason, str(failure))]
        if self._lost:
            message = f"{self._output.name}: {MAX_WAITING} observations wait, and newer ones are lost"
            found.append(SourceProblem(SOURCE, AuditReason.LOST, message))
        return tuple(found)

    def close(self) -> None:
        """Write what is left; bounded in time."""
        self._stopping.set()
        self._due.set()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive() or self._waiting or self._pending:
            logger.warning("%s: what was observed last is not written", self._output.name)

    def step(self) -> None:
        """Write what waits, unless the pause after a failure is not over."""
        if self._backoff.due:
            self._attempt()

    def finish(self) -> None:
        """Write what waits and that the exporter was stopped, and close the log."""
        self._attempt()
        if self._ledger is not None and not self._waiting and not self._pending:
            self._pending = self._ledger.stop()
            self._synced_at = float("-inf")
            self._attempt()
        self._output.close()

    def _attempt(self) -> None:
        self._busy_since = self._clock()
        try:
            self._write_all()
        except AuditLogError as error:
            self._failed(error)
        except OSError as error:
            text = f"{self._output.name} cannot be written: {error.strerror or error}"
            self._failed(AuditLogError(AuditReason.UNWRITABLE, text))
        except Exception:
            logger.exception("the audit log failed because of a defect in gpugauge; it goes on with what the log says")
            self._ledger, self._pending = None, b""
            self._failed(AuditLogError(AuditReason.UNWRITABLE, f"{self._output.name}: a defect in gpugauge"))
        else:
            if self._failure is not None:
                logger.info("%s: written again", self._output.name)
            self._failure = None
            self._backoff.reset()
        finally:
            self._busy_since = None

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._due.wait(self._pause())
            self._due.clear()
            self.step()
        self.finish()

    def _pause(self) -> float | None:
        """Seconds until there is something to do without a new observation; None for never."""
        if self._backoff.remaining:
            return self._backoff.remaining
        if self._waiting or self._pending:
            return 0.0
        return max(self._synced_at + SYNC_SECONDS - self._clock(), 0.0) if self._unsynced else None

    def _failed(self, error: AuditLogError) -> None:
        self._failure = error
        self.failures += 1
        self._backoff.failed()

    def _write_all(self) -> None:
        ledger = self._ledger or self._begin("started")
        self._write(ledger)
        while self._waiting:
            self._pending += ledger.observe(self._waiting.popleft())
            ledger = self._write(ledger)
        if self._unsynced and self._clock() - self._synced_at >= SYNC_SECONDS:
            self._output.sync()
            self._synced_at, self._unsynced = self._clock(), False

    def _write(self, ledger: Ledger) -> Ledger:
        """Write the lines that are not written yet. Returns the ledger to go on with."""
        if self._pending and self._output.changed():
            ledger = self._begin("continued")
        self._append()
        if self._output.full() and self._unrotated:
            self._output.rotate(ledger.chain.seq)
            self._pending, self._unrotated = ledger.begin(self._wall(), "rotated"), False
            self._append()
        return ledger

    def _append(self) -> None:
        if self._pending:
            self._output.append(self._pending)
            self._pending = b""
            self._unsynced, self._unrotated, self.wrote_at = True, True, self._wall()

    def _begin(self, reason: str) -> Ledger:
        """Open the log, and go on with what it says; or, if nobody else has written it since, with what is known."""
        opened = self._output.open()
        ledger = self._ledger
        if ledger is None or _written_by_others(opened, ledger.chain):
            ledger, self._pending = self._ledger_of(opened), b""
        self._pending += ledger.begin(self._wall(), reason, opened.repaired)
        self._ledger = ledger
        return ledger

    def _ledger_of(self, opened: Opened) -> Ledger:
        found = opened.found
        if found is None:
            return Ledger(Chain(self._node, new_chain_id()), self._longest, None, self._annotations)
        chain = Chain(self._node, found.chain, found.seq, found.prev)
        return Ledger(chain, self._longest, found.state, self._annotations)


def _written_by_others(opened: Opened, chain: Chain) -> bool:
    """Whether the log has lines that this process has not written."""
    found = opened.found
    return found is not None and (found.chain != chain.id or found.seq > chain.seq)
