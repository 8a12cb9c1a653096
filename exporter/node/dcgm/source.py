"""The `dcgm` source: `Readings` (devices and samples) from a host engine or an embedded engine, through libdcgm.

The first read loads libdcgm and connects; a read after a lost connection connects again, at intervals that grow.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from exporter.backoff import Backoff
from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.host_engine.same_machine import on_this_machine
from exporter.node.dcgm.native.connection import PROBE_SECONDS, EngineConnection
from exporter.node.dcgm.native.library import DcgmLibrary, open_library
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.session import EngineSession, ReadBindings
from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.driver_bindings import DriverBindings, driver_bindings
from exporter.node.devices.fields.device_source import ReaderConfig, SourceChoice, WantedField
from exporter.node.devices.readings.readings import Readings
from exporter.source import SourceError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts to open, doubling."""
_DEAD_ENGINE = frozenset({DcgmReason.DRIVER_MISSING, DcgmReason.DRIVER_ERROR})
"""Of an embedded engine these last as long as its process, because it looks for the driver only once.

An engine without NVML starts all the same, lists no GPU and answers -56 to a watch; before 4.5, one whose driver was
reloaded answers -56 or -8 (source).
"""


class DriverWatch(Protocol):
    """Watches whether the driver is unbound from a GPU, from its creation on."""

    def close(self) -> None: ...


class DcgmSource:
    """A DeviceSource over libdcgm. `config.remote` is the address of a host engine; None means an embedded engine.

    Reasons of its SourceErrors are DcgmReasons: those of `reasons.BY_STATUS` and `library_missing`,
    `library_unsupported`, `engine_unhealthy`, `engine_dead`, `no_devices`, `layout_mismatch`.
    """

    name = "dcgm"
    choice: SourceChoice | None = None

    def __init__(
        self,
        config: ReaderConfig,
        clocks: Clocks | None = None,
        load: Callable[[str | None], DcgmLibrary] = open_library,
        watch_driver: Callable[[], DriverWatch] | None = None,
        beside: Callable[[], str] = str,
        bindings: ReadBindings = driver_bindings,
    ) -> None:
        """`watch_driver` begins a watch while an embedded engine runs that does not let go of GPUs by itself.

        `beside` says which other engine seems to run here when one is embedded; empty for none. `bindings` is asked
        for the GPUs of this machine.
        """
        self._beside, self._other, self._bindings = beside, "", bindings
        self._watch_driver = watch_driver
        self._driver_watch: DriverWatch | None = None
        self._config, self._clocks, self._load = config, clocks or Clocks(), load
        self._library: DcgmLibrary | None = None
        self._session: EngineSession | None = None
        self._known: dict[str, Device] = {}
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._clocks.steady)
        self._failure = SourceError(DcgmReason.CONNECTION_LOST, "not opened yet")

    def read(self) -> Readings:
        """Read the devices. Raises SourceError; a later read opens again, after a pause."""
        if self._session is not None:
            try:
                return self._read(self._session)
            except SourceError as error:
                self._drop_session()
                if error.reason != DcgmReason.CONNECTION_LOST:
                    raise self._postponed(error) from error
        # After a lost connection one attempt at once, because an engine that was restarted may listen already.
        return self._reopened()

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on, through the same connection."""
        self._config = msgspec.structs.replace(self._config, fields=tuple(fields))
        if self._session is not None:
            self._session.want(fields)

    def close(self) -> None:
        """Remove watches and groups, close the connection and shut libdcgm down, in this order."""
        self._drop_session()
        if self._library is not None:
            self._library.status("dcgmShutdown")
            self._library = None

    def _reopened(self) -> Readings:
        if not self._backoff.due:
            wait = self._backoff.remaining
            raise SourceError(self._failure.reason, f"{self._failure}; next attempt in {wait:.0f} s")
        try:
            self._session = self._open()
            readings = self._read(self._session)
        except SourceError as error:
            self._drop_session()
            raise self._postponed(error) from error
        self._backoff.reset()
        return readings

    def _open(self) -> EngineSession:
        if self._library is None:
            self._library = self._load(self._config.libdcgm)
        # Half an interval at most. An attempt that outlasts the parent process's patience would be reported as slow,
        # and as what it is only by the next collections, which make none.
        probe_seconds = min(PROBE_SECONDS, self._config.interval / 2)
        embedded = self._config.remote is None
        if embedded and self._watch_driver is not None and not self._library.lets_go_of_gpus:
            self._driver_watch = self._watch_driver()  # before the engine opens any GPU
        self._other = self._beside() if embedded else ""
        connection = EngineConnection(self._library, self._config.remote, probe_seconds)
        here = embedded or on_this_machine(self._config.remote or "")
        bindings = self._bindings if here else _unknown_bindings
        return EngineSession(connection, self._config, self._known, self._clocks, bindings)

    def _read(self, session: EngineSession) -> Readings:
        try:
            readings = session.read()
        except SourceError as error:
            if self._config.remote is None and error.reason in _DEAD_ENGINE:
                raise SourceError(DcgmReason.ENGINE_DEAD, f"the embedded engine has no driver: {error}") from error
            raise
        if self._config.remote is None and not (readings.inventory or readings.components):
            raise SourceError(DcgmReason.NO_DEVICES, "the embedded engine lists no GPU")
        if not self._other:
            return readings
        return msgspec.structs.replace(readings, problems=(*readings.problems, (DcgmReason.SECOND_ENGINE, self._other)))

    def _drop_session(self) -> None:
        session, self._session = self._session, None
        watch, self._driver_watch = self._driver_watch, None
        if watch is not None:
            watch.close()
        if session is not None:
            session.close()

    def _postponed(self, error: SourceError) -> SourceError:
        """Postpone the next attempt because of this error, and return the error to raise."""
        self._failure = error
        self._backoff.failed()
        return SourceError(error.reason, str(error))


def _unknown_bindings(devices: Sequence[Device]) -> DriverBindings:
    """Those of another machine, which this one cannot see."""
    return (0,) * len(devices)
