"""The library's life: opened when needed, closed when it or a board fails, opened again with growing pauses."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pynvml

from exporter.node.nvml.values import failure
from exporter.source import SourceError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts to open; each failure doubles the pause."""


@dataclass(slots=True)
class Session:
    """NVML between nvmlInit and nvmlShutdown."""

    clock: Callable[[], float] = time.monotonic
    versions: dict[str, str] = field(default_factory=dict)
    """`driver` and `nvml`, as far as known."""
    is_open: bool = False
    _pause: float = 0.0
    _not_before: float = float("-inf")
    _why: SourceError | None = None

    def open(self) -> None:
        """Initialises the library, unless it is. Raises SourceError; within a pause, the last one again."""
        if self.is_open:
            return
        if self._why is not None and self.clock() < self._not_before:
            raise self._why
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise self.failed(failure(error.value)) from error
        self.is_open, self._why, self._pause = True, None, 0.0
        self.versions = {
            name: text
            for name, function in (
                ("driver", pynvml.nvmlSystemGetDriverVersion),
                ("nvml", pynvml.nvmlSystemGetNVMLVersion),
            )
            if (text := _text(function))
        }

    def failed(self, why: SourceError) -> SourceError:
        """Closes, and lets some time pass before the next attempt to open."""
        self.close()
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        self._not_before, self._why = self.clock() + self._pause, why
        return why

    def close(self) -> None:
        if self.is_open:
            with contextlib.suppress(pynvml.NVMLError):  # nothing more can be done for a library that will not close
                pynvml.nvmlShutdown()
        self.is_open = False


def _text(function: Callable[[], str]) -> str:
    try:
        return function()
    except pynvml.NVMLError:
        return ""
