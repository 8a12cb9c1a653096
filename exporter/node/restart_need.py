"""Decides whether only a restart of the container can help: then the exporter is no longer live.

A container has the driver's libraries that were there when it was started. Where they are missing beside a loaded
driver, or are those of a driver that was replaced since, no new process in this container can find others. No I/O but
a look whether a driver is loaded.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.reader.reasons import ReaderReason
from exporter.snapshot import Snapshot

DRIVER = Path("/proc/driver/nvidia/version")
"""There while the NVIDIA kernel driver is loaded, also in a container."""
PATIENCE_SECONDS = 300.0
"""How long it may last: a driver that is installed has its module before its libraries, or the other way round."""

_MISSING = "a driver is loaded on this node but its libraries are missing in this container"
MESSAGES: Mapping[str, str] = {
    DcgmReason.LIBRARY_MISSING: _MISSING,
    NvmlReason.LIBRARY_MISSING: _MISSING,
    NvmlReason.DRIVER_MISMATCH: "the driver of this node was replaced, and this container has the libraries of another",
}
"""By the reason of a source that is down."""
_BETWEEN_PROCESSES = frozenset({ReaderReason.STARTING, ReaderReason.RESTARTING, ReaderReason.DRIVER_UNBOUND})
"""Reasons that say nothing about the libraries: a reader process ends with each attempt after a mismatch."""


class RestartNeed:
    """Notes what every collection found. `message` may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, driver: Path = DRIVER) -> None:
        """`clock` must be monotonic."""
        self._clock, self._driver = clock, driver
        self._found: tuple[float, str] | None = None
        """Since when a restart could help, and why."""

    def note(self, snapshot: Snapshot) -> None:
        reasons = {health.reason for health in snapshot.health if not health.up}
        message = next((text for reason, text in MESSAGES.items() if reason in reasons), None)
        if not self._driver.exists():
            self._found = None
        elif message is not None:
            self._found = (self._found[0] if self._found else self._clock()), message
        elif not reasons & _BETWEEN_PROCESSES:
            self._found = None

    def message(self) -> str | None:
        """Why only a restart of the container can help, once that has lasted for PATIENCE_SECONDS; else None."""
        found = self._found
        return found[1] if found is not None and self._clock() - found[0] > PATIENCE_SECONDS else None
