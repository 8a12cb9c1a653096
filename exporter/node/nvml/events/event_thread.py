"""The thread that waits for the NVML events of one GPU.

NVML may be used by several threads at once, but one event set only by one (NVML reference): the set is made where the
GPU is registered, and from then on it is the thread's alone.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

import pynvml

from exporter.node.nvml.native.values import TIMEOUT

_log = logging.getLogger(__name__)

WAIT_MILLISECONDS = 200
"""How long one wait lasts without an event, and how long the thread needs to end."""
BURST, BURST_PAUSE = 256, 0.05
"""Events that are taken out of the set at once, and the seconds until the next: a storm leaves time for collections.
Further events stay in the set meanwhile."""
CLOSE_SECONDS = 2.0
"""How long `close` waits for the thread. One that hangs in the driver is left behind, with its set."""


class EventThread:
    """Calls `record` with the code of every XID of a GPU, in a thread of its own."""

    def __init__(self, handle: Any, record: Callable[[int], None]) -> None:
        """Register the GPU. Raises NVMLError when that fails."""
        self._record = record
        self._stop = threading.Event()
        self.receives = True
        """Whether events come. Not after one that the set could not be waited for: the GPU was lost."""
        self._set: Any = pynvml.nvmlEventSetCreate()
        try:
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except Exception:
            self._free()
            raise
        self._thread = threading.Thread(target=self._run, name="xid events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end once its wait is over; it first takes what is still in the set."""
        self._stop.set()

    def close(self) -> None:
        """Stop, and wait until the thread has ended. To be called before the session is closed."""
        self._stop.set()
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            _log.warning("a thread that receives XIDs hangs in the driver and is left behind")

    def _run(self) -> None:
        try:
            while self.receives and not self._stop.is_set():
                self._stop.wait(self._receive(WAIT_MILLISECONDS))
            if self.receives:
                self._receive(0)
        except Exception:  # noqa: BLE001 - a defect is as an event set that fails: the next collection begins anew
            _log.debug("XIDs could not be received", exc_info=True)
        finally:
            self.receives = False
            self._free()

    def _receive(self, milliseconds: int) -> float:
        """Wait for events and record them, at most BURST. Return how many seconds to pause."""
        for _ in range(BURST):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, milliseconds)
            except pynvml.NVMLError as error:
                self.receives = error.value == TIMEOUT
                return 0.0
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._record(int(event.eventData))
            milliseconds = 0
        return BURST_PAUSE

    def _free(self) -> None:
        with contextlib.suppress(pynvml.NVMLError):  # nvmlShutdown frees it too
            pynvml.nvmlEventSetFree(self._set)
