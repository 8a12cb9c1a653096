"""XIDs: NVML tells of them through an event set, which is emptied in each pass without waiting.

Events from before the set was made, and from while it was closed, are not told by NVML.
"""

import contextlib
import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import pynvml

from exporter.node.nvml.values import TIMEOUT, Answer, Rejected

PER_PASS = 256
"""More events than this wait for the next pass: a storm must not hold a pass up."""


class XidEvents:
    """The last XID of each board and when it was heard of, kept for the life of the reader."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._set: Any = None
        self._last: dict[str, tuple[int, float]] = {}
        self._watched: dict[int | None, str] = {}
        """Uuid by the address that is the board's handle: a lost board, of which an XID tells, answers no more."""

    def watch(self, boards: Iterable[tuple[str, Any]]) -> None:
        """Listen to these boards, (uuid, handle), as far as they offer it; each is registered once."""
        for uuid, handle in boards:
            if uuid not in self._watched.values():
                with contextlib.suppress(pynvml.NVMLError):  # last() says that there is nothing
                    self._register(uuid, handle)

    def _register(self, uuid: str, handle: Any) -> None:
        if self._set is None:
            self._set = pynvml.nvmlEventSetCreate()
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        self._watched[_address(handle)] = uuid

    def collect(self) -> None:
        """Take what has happened since the last pass."""
        if self._set is None:
            return
        for _ in range(PER_PASS):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except pynvml.NVMLError as error:
                if error.value != TIMEOUT:
                    self.close()  # the set died with a board: watch() makes a new one
                return
            self._note(event)

    def _note(self, event: Any) -> None:
        uuid = self._watched.get(_address(event.device))
        if uuid is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
            self._last[uuid] = int(event.eventData), self._clock()

    def last(self, uuid: str, age: float) -> Answer | None:
        """The last XID of a board; None while there was none for `age` seconds."""
        if uuid in self._last:
            xid, heard_at = self._last[uuid]
            return xid if self._clock() - heard_at <= age else None
        return None if uuid in self._watched.values() else Rejected("not_supported")

    def close(self) -> None:
        """Stop listening; what was heard is kept."""
        if self._set is not None:
            with contextlib.suppress(pynvml.NVMLError):  # a library that was shut down took it along
                pynvml.nvmlEventSetFree(self._set)
        self._set = None
        self._watched.clear()


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
