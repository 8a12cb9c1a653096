"""A host engine that may be away: the `auto` source asks it in the background while it reads from another source."""

import logging
import threading
from collections.abc import Callable, Sequence

from exporter.node.dcgm.reasons import DcgmReason
from exporter.node.devices.device_source import DeviceSource, SourceChoice, WantedField
from exporter.node.devices.readings import Readings
from exporter.source import SourceError

_log = logging.getLogger(__name__)

Starter = Callable[[Callable[[], None]], None]
"""Runs a function, and returns without waiting for its end."""


def in_background(function: Callable[[], None]) -> None:
    """Run a function in a thread that does not keep the process from ending: a call of libdcgm can take 60 s."""
    threading.Thread(target=function, name="host engine", daemon=True).start()


class HostEngine:
    """A DeviceSource over a host engine; `answers` asks without waiting. Its methods are for one thread."""

    choice: SourceChoice | None = None

    def __init__(self, source: DeviceSource, start: Starter = in_background) -> None:
        """`source` postpones its attempts to connect itself (as DcgmSource does), so it may be asked at any time."""
        self._source, self._start = source, start
        self._wanted: Sequence[WantedField] | None = None
        """Fields that the source has not been told of yet, because it was being asked."""
        self.name = source.name
        self._failure = SourceError(DcgmReason.CONNECTION_LOST, "not asked yet")
        self._answered = False
        self._asking = threading.Event()
        """Set while the background thread has `_source`, `_failure` and `_answered` for itself."""

    def read(self) -> Readings:
        """Read the engine. Raises SourceError, with the last failure while it is asked in the background."""
        if self._asking.is_set():
            raise SourceError(self._failure.reason, f"{self._failure}; it is being asked again")
        self._tell_source()
        return self._source.read()

    def answers(self) -> bool:
        """Whether the engine answered when it was last asked. If it did not, ask again, in the background."""
        if self._asking.is_set():
            return False
        answered, self._answered = self._answered, False
        if not answered:
            self._tell_source()
            self._asking.set()
            self._start(self._ask)
        return answered

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on that is not in progress already."""
        self._wanted = fields

    def close(self) -> None:
        """Close the source, unless it is being asked: then it ends with the process, which nothing should delay."""
        if not self._asking.is_set():
            self._source.close()

    def _tell_source(self) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            self._source.want(wanted)

    def _ask(self) -> None:
        try:
            self._source.read()
            self._answered = True
        except SourceError as error:
            self._failure = error
        except Exception:  # noqa: BLE001 - a defect must not end the asking, and with it the way back to the engine
            _log.warning("asking the host engine raised an exception that is not a SourceError", exc_info=True)
        finally:
            self._asking.clear()
