"""The session with NVML, from nvmlInit to nvmlShutdown.

It is opened before a read, closed after an error, and opened again after a pause.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pynvml

from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.node.nvml.native.values import source_error
from exporter.source import SourceError


@dataclass(slots=True)
class NvmlSession:
    """Opens and closes NVML. At most one session is open at a time; `clock` must be monotonic."""

    clock: Callable[[], float] = time.monotonic
    in_use: Callable[[], bool] = lambda: False
    """Whether another thread is in a call of the library: a shutdown would free what that call uses."""
    versions: dict[str, str] = field(default_factory=dict)
    """Version texts `driver` and `nvml`, as far as known."""
    is_open: bool = False
    _open_inits: int = 0
    """Calls of nvmlInit that no nvmlShutdown has ended: NVML counts them, and ends a session with the last."""
    _last_error: SourceError | None = None
    _backoff: Backoff = field(init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self.clock)

    @property
    def has_gpus_open(self) -> bool:
        """Whether NVML is initialized: also of a closed session, while the library is in use."""
        return self._open_inits > 0

    def open(self) -> None:
        """Initialize the library unless a session is open.

        Raises SourceError; before the next attempt is due, it is the error of the last attempt.
        """
        if self.is_open:
            return
        if self._last_error is not None and not self._backoff.due:
            raise self._last_error
        self._shut_down()
        try:
            # Loads libnvidia-ml.so.1 by its soname, once per process.
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise self.failed(source_error(error.value)) from error
        self.is_open, self._last_error = True, None
        self._open_inits += 1
        self._backoff.reset()
        self.versions = _versions()

    def failed(self, error: SourceError) -> SourceError:
        """Close the session and begin the pause before the next attempt to open. Returns `error`, for raising."""
        self.close()
        self._backoff.failed()
        self._last_error = error
        return error

    def close(self) -> None:
        """Shut the library down if it is open. Every handle and sample buffer of the session is then invalid.

        While the library is in use it stays as it is; the next `open` or `close` shuts it down.
        """
        self.is_open = False
        self._shut_down()

    def _shut_down(self) -> None:
        while self._open_inits and not self.in_use():
            self._open_inits -= 1
            with contextlib.suppress(pynvml.NVMLError):  # nothing more can be done when the shutdown fails
                pynvml.nvmlShutdown()


def _versions() -> dict[str, str]:
    functions = {"driver": pynvml.nvmlSystemGetDriverVersion, "nvml": pynvml.nvmlSystemGetNVMLVersion}
    return {name: text for name, function in functions.items() if (text := _text(function))}


def _text(function: Callable[[], str]) -> str:
    try:
        return function()
    except (pynvml.NVMLError, UnicodeDecodeError):
        return ""
