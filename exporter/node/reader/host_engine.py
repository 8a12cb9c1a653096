"""A host engine that may be away: the `auto` source asks it in the background while it reads from another source."""

import logging
import threading
from collections.abc import Callable, Sequence

from exporter.background import Starter, in_background
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.devices.fields.device_source import DeviceSource, SourceChoice, WantedField
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.reasons import ReaderReason
from exporter.source import SourceError

_log = logging.getLogger(__name__)

Waiter = Callable[[threading.Event, float], bool]
"""Waits for an event at most so many seconds. Returns whether it is set."""


class HostEngine:
    """A DeviceSource over a host engine that can be asked without waiting, or for a limited time. For one thread."""

    choice: SourceChoice | None = None

    def __init__(self, source: DeviceSource, start: Starter | None = None, wait: Waiter = threading.Event.wait) -> None:
        """`source` postpones its attempts to connect itself (as DcgmSource does), so it may be asked at any time.

        `start` runs the asking, by default in a thread: a call of libdcgm can take 60 s.
        """
        self._source, self._start, self._wait = source, start or in_background("host engine"), wait
        self._wanted: Sequence[WantedField] | None = None
        """Fields that the source has not been told of yet, because it was being asked."""
        self.name = source.name
        self._failure = SourceError(DcgmReason.TIMEOUT, "the host engine has not answered yet")
        self._answer: Readings | None = None
        """The readings of the last ask in the background, if it was answered."""
        self._idle = threading.Event()
        """Not set while the background thread has `_source`, `_failure` and `_answer` for itself."""
        self._idle.set()

    def read(self) -> Readings:
        """Read the engine. Raises SourceError, with the last failure while it is asked in the background."""
        if not self._idle.is_set():
            raise SourceError(self._failure.reason, f"{self._failure}; it is being asked again")
        self._tell_source()
        return self._source.read()

    def read_within(self, seconds: float) -> Readings:
        """Read the engine, waiting at most so many seconds; after that, the asking goes on in the background.

        Raises SourceError. libdcgm itself waits 60 s for an engine that accepts the connection and does not answer.
        """
        if not self._idle.is_set():
            return self.read()  # raises the last failure
        self._begin_asking()
        if not self._wait(self._idle, seconds):
            raise SourceError(DcgmReason.TIMEOUT, f"the host engine has not answered within {seconds:.0f} s")
        answer, self._answer = self._answer, None
        if answer is None:
            raise SourceError(self._failure.reason, str(self._failure))
        return answer

    def answers(self) -> bool:
        """Whether the engine answered when it was last asked. If it did not, ask again, in the background."""
        if not self._idle.is_set():
            return False
        answer, self._answer = self._answer, None
        if answer is None:
            self._begin_asking()
        return answer is not None

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on that is not in progress already."""
        self._wanted = fields

    def close(self) -> None:
        """Close the source, unless it is being asked: then it ends with the process, which nothing should delay."""
        if self._idle.is_set():
            self._source.close()

    def _begin_asking(self) -> None:
        self._tell_source()
        self._idle.clear()
        self._start(self._ask)

    def _tell_source(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            self._source.want(wanted)

    def _ask(self) -> None:
        try:
            self._answer = self._source.read()
        except SourceError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - a defect must not end the asking, and with it the way back to the engine
            _log.warning("asking the host engine raised an exception that is not a SourceError", exc_info=True)
            self._failure = SourceError(ReaderReason.INTERNAL, f"{type(error).__name__}: {error}")
        finally:
            self._idle.set()
