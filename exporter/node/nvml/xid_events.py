"""Receives XIDs (the driver's GPU error codes) from NVML events: every collection empties event sets without waiting.

NVML reports only what happens while a GPU is registered in a set: events from before, and from while the set was
closed, are lost. Events are registered on a GPU, never on a MIG device. In MIG mode a process without privileges
receives only those that concern the whole GPU (NVML reference, nvmlEventSetWait_v2).
"""

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any

import pynvml

from exporter.node.devices.readings import RejectionReason
from exporter.node.nvml.values import TIMEOUT, NvmlValue, RejectedValue

MAX_EVENTS = 256
"""Per collection; further events stay in the set for the next one, so that a storm does not delay a collection."""


LastXids = dict[str, tuple[int, float]]
"""By UUID, the last XID of each GPU and when it was received; kept for the life of the source."""


class XidEvents:
    """The event set of one GPU: a set of several could not be waited for without waiting for each of them."""

    def __init__(self, clock: Callable[[], float], last: LastXids) -> None:
        """`last` is kept when this is closed. For use by one thread at a time."""
        self._clock, self._last = clock, last
        self._set: Any = None
        self._watched: dict[int | None, str] = {}
        """UUIDs by the address in the GPU's handle. After a fatal XID the GPU is lost: its UUID cannot be read then."""

    def watch(self, uuid: str, handle: Any) -> None:
        """Register a GPU, if it is not registered yet."""
        if uuid not in self._watched.values():
            with contextlib.suppress(pynvml.NVMLError):  # last() then returns "not supported"
                self._register(uuid, handle)

    def _register(self, uuid: str, handle: Any) -> None:
        if self._set is None:
            self._set = pynvml.nvmlEventSetCreate()
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        self._watched[_address(handle)] = uuid

    def collect(self) -> None:
        """Take the events since the last collection out of the set."""
        if self._set is None:
            return
        for _ in range(MAX_EVENTS):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)  # 0 ms: NVML_ERROR_TIMEOUT when the set is empty
            except pynvml.NVMLError as error:
                if error.value != TIMEOUT:
                    self.close()  # the GPU was lost: watch() creates a new set
                return
            self._record(event)

    def _record(self, event: Any) -> None:
        uuid = self._watched.get(_address(event.device))
        if uuid is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
            self._last[uuid] = int(event.eventData), self._clock()

    def last(self, uuid: str, max_age: float) -> NvmlValue | None:
        """Return the last XID of a GPU; None where none was received in the last `max_age` seconds."""
        if uuid in self._last:
            xid, received_at = self._last[uuid]
            return xid if self._clock() - received_at <= max_age else None
        return None if uuid in self._watched.values() else RejectedValue(RejectionReason.NOT_SUPPORTED)

    def close(self) -> None:
        """Free the event set; the XIDs received so far are kept."""
        if self._set is not None:
            with contextlib.suppress(pynvml.NVMLError):  # nvmlShutdown frees it too
                pynvml.nvmlEventSetFree(self._set)
        self._set = None
        self._watched.clear()


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
