"""Waits for the driver's events of unbinding and binding GPUs, so that no GPU is kept open that is taken away.

Whoever unbinds the driver from a GPU, such as to give it to a virtual machine, waits until no process has it open any
more. NVML keeps every GPU open from nvmlInit to nvmlShutdown. So on an unbind the process has to let go of all of them,
also while one of its calls hangs. A driver that is too old to report these events is not watched.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pynvml

from exporter.node.nvml.native.values import FUNCTION_NOT_FOUND, NO_PERMISSION, NOT_SUPPORTED, VERSION_MISMATCH

_log = logging.getLogger(__name__)

WAIT_MILLISECONDS = 200
"""How long one wait lasts without an event, and how long the thread needs to end."""
RETRY_SECONDS = 5.0
"""Before the events are registered again after a failure that may pass."""
CLOSE_SECONDS = 2.0
"""How long `close` waits for the thread. One that hangs in the driver is left behind."""
_EVENTS = 64
"""How many events one wait can return: as many as a node can have GPUs, twice."""
_NEVER = frozenset({FUNCTION_NOT_FOUND, NOT_SUPPORTED, NO_PERMISSION, VERSION_MISMATCH})
"""Codes of a driver that has no such events for this process."""
_UNBIND = pynvml.nvmlSystemEventTypeGpuDriverUnbind
_BIND = pynvml.nvmlSystemEventTypeGpuDriverBind


class DriverEvents:
    """Waits in a thread of its own from its creation until `close`; that the driver has no events is no failure."""

    def __init__(
        self, unbound: Callable[[], None], *, own_session: bool = False, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        """`unbound` is called in the thread, once, when the driver is to be unbound from any GPU.

        With `own_session` the thread initializes NVML itself; else the caller keeps it initialized until `close`.
        """
        self._unbound, self._own_session, self._retry_seconds = unbound, own_session, retry_seconds
        self.receives = False
        """Whether the driver reports events: those from before are never reported."""
        self._stop, self._bound = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="driver events", daemon=True)
        self._thread.start()

    @property
    def bound(self) -> bool:
        """Whether the driver was bound to a GPU: only a new session with NVML lists it."""
        return self._bound.is_set()

    def stop(self) -> None:
        """Let the thread end once its wait is over."""
        self._stop.set()

    def close(self) -> None:
        """Stop, and wait until the thread has ended. To be called before the session is closed."""
        self._stop.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set() and not self._is_done():
            self._stop.wait(self._retry_seconds)

    def _is_done(self) -> bool:
        """Wait for events. Return whether nothing is left to wait for; else the attempt has failed."""
        try:
            with self._session(), _registered() as event_set:
                self._wait(event_set)
        except pynvml.NVMLError as error:
            _log.debug("the driver's unbind events cannot be received: %r", error)
            return error.value in _NEVER
        finally:
            self.receives = False
        return True

    def _wait(self, event_set: Any) -> None:
        """Wait until an unbind, or until the thread is to end."""
        self.receives = True
        while not self._stop.is_set():
            types = _received(event_set)
            if types & _BIND:
                self._bound.set()
            if types & _UNBIND:
                self._unbound()
                return

    @contextlib.contextmanager
    def _session(self) -> Iterator[None]:
        if not self._own_session:
            yield
            return
        # NVML counts initializations: another library of this process has the GPUs open already.
        pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
        try:
            yield
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


@contextlib.contextmanager
def _registered() -> Iterator[Any]:
    """Make an event set with both events registered. Events from before are not in it (NVML reference)."""
    event_set = pynvml.nvmlSystemEventSetCreate(pynvml.nvmlSystemEventSetCreateRequest_v1)
    try:
        pynvml.nvmlSystemRegisterEvents(pynvml.nvmlSystemRegisterEventRequest_v1, _UNBIND | _BIND, event_set)
        yield event_set
    finally:
        with contextlib.suppress(pynvml.NVMLError):  # nvmlShutdown frees it too
            pynvml.nvmlSystemEventSetFree(pynvml.nvmlSystemEventSetFreeRequest_v1, event_set)


def _received(event_set: Any) -> int:
    """Wait for events once. Return the types of those that came, as bits."""
    events = (pynvml.c_nvmlSystemEventData_v1_t * _EVENTS)()
    version = pynvml.nvmlSystemEventSetWaitRequest_v1
    try:
        found = pynvml.nvmlSystemEventSetWait(version, event_set, WAIT_MILLISECONDS, events, _EVENTS)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:  # more than fit: an unbind may be among them
            return int(_UNBIND)
        raise
    types = 0
    for event in found or ():
        types |= int(event["eventType"])
    return types
