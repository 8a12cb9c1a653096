"""Adds the processes on the GPUs to the readings of a source that reads them from DCGM: only NVML lists processes.

NVML is read beside the engine, in a thread of its own, so that a GPU or a library that hangs there costs the processes
and never the readings of the engine.
"""

import threading
from collections.abc import Sequence

import msgspec

from exporter.background import Starter, in_background
from exporter.node.devices.fields.device_source import DeviceSource, SourceChoice, WantedField
from exporter.node.devices.readings.processes import ProcessReadings, ProcessReason
from exporter.node.devices.readings.readings import Readings
from exporter.source import SourceError

PATIENCE_SHARE, MAX_PATIENCE_SECONDS = 0.3, 2.0
"""How long the processes are waited for: this share of the interval between collections, and never longer."""


class WithProcesses:
    """A DeviceSource whose readings have the processes too."""

    def __init__(
        self,
        source: DeviceSource,
        beside: DeviceSource,
        interval: float,
        start: Starter = in_background("processes"),  # noqa: B008 - it has no state
    ) -> None:
        """`beside` reads nothing but processes; `interval` is between collections, in seconds."""
        self._source, self._beside, self._start = source, beside, start
        self.name = source.name
        self._patience = min(interval * PATIENCE_SHARE, MAX_PATIENCE_SECONDS)
        self._done = threading.Event()
        self._done.set()
        self._found = ProcessReadings()

    @property
    def choice(self) -> SourceChoice | None:
        """That of the source."""
        return self._source.choice

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on."""
        self._source.want(fields)

    def read(self) -> Readings:
        """Read the source, and then the processes where it has not read them itself. Raises SourceError."""
        readings = self._source.read()
        self.name = self._source.name
        if readings.processes is not None:
            return readings
        return msgspec.structs.replace(readings, processes=self._processes())

    def close(self) -> None:
        """Close both, but NVML not while a call of it hangs: the process ends soon after."""
        self._source.close()
        if self._done.is_set():
            self._beside.close()

    def _processes(self) -> ProcessReadings:
        if self._done.is_set():
            self._done.clear()
            self._start(self._read)
            if self._done.wait(self._patience):
                return self._found
        message = f"NVML has not listed the processes within {self._patience:g} s"
        return ProcessReadings(problem=(ProcessReason.NVML_SLOW, message))

    def _read(self) -> None:
        try:
            self._found = self._beside.read().processes or ProcessReadings()
        except SourceError as error:
            self._found = ProcessReadings(problem=(ProcessReason.NVML_MISSING, str(error)))
        except Exception as error:  # noqa: BLE001 - a defect costs the processes, never the readings of the engine
            self._found = ProcessReadings(problem=(ProcessReason.FAILED, f"the processes cannot be read: {error!r}"))
        finally:
            self._done.set()
