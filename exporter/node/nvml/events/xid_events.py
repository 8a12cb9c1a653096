"""Receives XIDs (the driver's GPU error codes) from NVML events, of each GPU in a thread of its own.

So each XID has its time, neither a long collection misses one nor a storm of them delays a collection, and a GPU that
hangs or is lost costs only its own. NVML reports only what happens while a GPU is registered in an event set: events
from before, and from while the set was closed, are lost. Events are registered on a GPU, never on a MIG device. In MIG
mode a process without privileges receives only those that concern the whole GPU (NVML reference, nvmlEventSetWait_v2).
"""

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from exporter.node.devices.readings.readings import RejectionReason, XidReport
from exporter.node.devices.readings.xids import NO_XID
from exporter.node.nvml.events.event_thread import EventThread
from exporter.node.nvml.native.values import NvmlValue, RejectedValue

_log = logging.getLogger(__name__)

STEP_SECONDS = 1e-6
"""Between the times of two XIDs where the clock did not go on, or was set back."""


class XidMemory:
    """The XIDs of all GPUs, kept for the life of the source. For use by any thread."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """`clock` must be monotonic, for the age of the last XID; `wall` gives Unix seconds."""
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self._last: dict[str, tuple[int, float]] = {}
        """Code and time (monotonic) of the last XID by UUID."""
        self._latest = 0.0
        self._reports: dict[tuple[str, int, int], XidReport] = {}
        """By UUID, code and whole second: a storm of one code needs no more memory than one XID in each second."""
        self._taken: tuple[XidReport, ...] = ()
        """What was taken last."""

    def record(self, uuid: str, code: int) -> None:
        """Note that a GPU has an XID now."""
        with self._lock:
            self._latest = at = max(self._wall(), self._latest + STEP_SECONDS)
            self._last[uuid] = code, self._clock()
            key = (uuid, code, int(at))
            before = self._reports.get(key)
            self._reports[key] = XidReport(uuid, code, at, 1 if before is None else before.count + 1)

    def last(self, uuid: str, max_age: float) -> int | None:
        """Return the last XID of a GPU: 0 before the first, None when it came more than `max_age` seconds ago.

        XIDs from before they were received are not known: 0 is no statement about those.
        """
        with self._lock:
            last = self._last.get(uuid)
        if last is None:
            return NO_XID
        xid, received_at = last
        return xid if self._clock() - received_at <= max_age else None

    def take(self) -> tuple[XidReport, ...]:
        """Return the XIDs that came since the last call, in the order of their times."""
        with self._lock:
            reports, self._reports = self._reports, {}
            self._taken = tuple(sorted(reports.values(), key=lambda report: report.at))
            return self._taken

    def unconfirmed(self) -> tuple[XidReport, ...]:
        """Return those that came since, and before them those taken last, which may not have arrived."""
        with self._lock:
            return (*self._taken, *sorted(self._reports.values(), key=lambda report: report.at))


class XidEvents:
    """Receives the XIDs of one GPU, and puts them into the memory of all. For use by one thread at a time."""

    def __init__(self, memory: XidMemory) -> None:
        self._memory = memory
        self._thread: EventThread | None = None

    def watch(self, uuid: str, handle: Any) -> None:
        """Receive the XIDs of this GPU from now on, if that is not so already."""
        if self._thread is not None and self._thread.receives:
            return
        try:
            self._thread = EventThread(handle, partial(self._memory.record, uuid))
        except Exception as error:  # noqa: BLE001 - it costs the XIDs of this GPU, which are then not supported
            _log.debug("XIDs of %s cannot be received: %r", uuid, error)

    def last(self, uuid: str, max_age: float) -> NvmlValue | None:
        """Return the last XID, as the memory has it; that none came is known only while they are received.

        So it is of a GPU whose events are registered, as an engine says of one that it watches (see `validity.py`).
        """
        last = self._memory.last(uuid, max_age)
        receives = self._thread is not None and self._thread.receives
        return last if last != NO_XID or receives else RejectedValue(RejectionReason.NOT_SUPPORTED)

    def stop(self) -> None:
        """Let the thread end, without waiting for it."""
        if self._thread is not None:
            self._thread.stop()

    def close(self) -> None:
        """End the thread and free its event set; what was received so far is kept."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()
