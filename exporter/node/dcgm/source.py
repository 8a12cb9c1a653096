"""The `dcgm` source: a host engine or an embedded one, opened when first read and again after every loss."""

from collections.abc import Callable

from exporter.node.dcgm.connection import Connection
from exporter.node.dcgm.library import Library, open_library
from exporter.node.dcgm.session import Clocks, Session
from exporter.node.devices.readings import Device, ReaderConfig, Readings
from exporter.source import SourceError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts to open, doubling."""
_DEAD_ENGINE = frozenset({"driver_missing", "driver_error"})
"""With an embedded engine these last as long as the process: it looks for the driver once."""


class DcgmSource:
    """A DeviceSource over libdcgm; `config.remote` names a host engine, None embeds one.

    Reasons of its SourceErrors: `library_missing`, `library_unsupported`, `address_invalid`, `engine_unhealthy`,
    `engine_dead`, `no_devices`, `layout_mismatch`, and those of `library.REASONS`.
    """

    name = "dcgm"

    def __init__(
        self,
        config: ReaderConfig,
        clocks: Clocks | None = None,
        load: Callable[[str | None], Library] = open_library,
    ) -> None:
        self._config, self._clocks, self._load = config, clocks or Clocks(), load
        self._library: Library | None = None
        self._session: Session | None = None
        self._known: dict[str, Device] = {}
        self._pause, self._not_before = FIRST_PAUSE, 0.0
        self._failure = SourceError("connection_lost", "not opened yet")

    def read(self) -> Readings:
        """What the engine knows now. Raises SourceError; the next read opens anew when its time has come."""
        if self._session is not None:
            try:
                return self._read(self._session)
            except SourceError as error:
                self._drop()
                if error.reason != "connection_lost":
                    raise self._put_off(error) from error
        # An engine that was restarted may be there already: one try at once.
        return self._reopened()

    def close(self) -> None:
        """Watches, groups, connection, library, in this order."""
        self._drop()
        if self._library is not None:
            self._library.status("dcgmShutdown")
            self._library = None

    def _reopened(self) -> Readings:
        wait = self._not_before - self._clocks.steady()
        if wait > 0:
            raise SourceError(self._failure.reason, f"{self._failure}; next try in {wait:.0f} s")
        try:
            self._session = self._open()
            readings = self._read(self._session)
        except SourceError as error:
            self._drop()
            raise self._put_off(error) from error
        self._pause = FIRST_PAUSE
        return readings

    def _open(self) -> Session:
        if self._library is None:
            self._library = self._load(self._config.library)
        connection = Connection(self._library, self._config.remote)
        return Session(connection, self._config, self._known, self._clocks)

    def _read(self, session: Session) -> Readings:
        try:
            readings = session.read()
        except SourceError as error:
            if self._config.remote is None and error.reason in _DEAD_ENGINE:
                raise SourceError("engine_dead", f"the embedded engine has no driver: {error}") from error
            raise
        if self._config.remote is None and not readings.inventory:
            raise SourceError("no_devices", "the embedded engine sees no GPU")
        return readings

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _put_off(self, error: SourceError) -> SourceError:
        self._failure = error
        self._not_before = self._clocks.steady() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return SourceError(error.reason, str(error))
