"""Pauses profiling while a file is there: profilers such as Nsight Compute need the hardware counters for themselves.

In: whether the file exists, looked at before each collection. Out: which fields the source is to read. Nothing else
stops: the watches of all other fields stay, and those of profiling fields are made again once the file is gone.
"""

import logging
from pathlib import Path

from exporter.node.devices.fields.device_source import WantedField
from exporter.node.reader.reasons import ReaderReason
from exporter.snapshot import SourceProblem

_log = logging.getLogger(__name__)


class ProfilingPause:
    """Whether profiling is paused now. For the collection loop's thread alone."""

    def __init__(self, file: Path | None) -> None:
        """Without a file, profiling is never paused."""
        self._file = file
        self.paused = False
        self.look()

    def look(self) -> bool:
        """Look whether the file is there. Return whether that is otherwise than before."""
        paused = self._file is not None and self._file.exists()
        if paused == self.paused:
            return False
        self.paused = paused
        _log.info("profiling is paused: %s is there" if paused else "profiling goes on: %s is gone", self._file)
        return True

    def wanted(self, fields: tuple[WantedField, ...]) -> tuple[WantedField, ...]:
        """Return what of these fields the source is to read now."""
        return tuple(field for field in fields if not (self.paused and field.watch == "profiling"))

    def problem(self, source: str) -> SourceProblem | None:
        """Return what is to be said of it, where profiling is paused."""
        if not self.paused:
            return None
        return SourceProblem(source, ReaderReason.PROFILING_PAUSED_BY_FILE, f"profiling is paused by {self._file}")
