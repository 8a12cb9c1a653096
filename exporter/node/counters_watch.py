"""Reads the counters file: at the start, when it has changed, and again some time after a failure.

The file may come after the start, may be read while it is rewritten, and may be on a file system that fails for a
moment. `CountersWatch` knows when it is to be read; a caller decides what a failure means.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from exporter import regular_file
from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.config import ConfigError, ConfigFileError
from exporter.exposition.exporter_metrics import ConfigState
from exporter.node.config_file.content import FieldList
from exporter.node.devices.counters.counters_file import Counters, counters_of, decode, parse
from exporter.regular_file import UnreadableFileError

logger = logging.getLogger(__name__)

BUILT_IN = files("exporter.node.devices") / "defaults" / "default-counters.csv"
"""The counters file that is used without one of the user's."""
MAX_COUNTERS_BYTES = 1 << 20
"""The largest counters file: as much as a ConfigMap can hold."""
LOGGED_PROBLEMS = 20
"""How many rows that cannot be used are logged one by one: a file of 1 MiB can have hundreds of thousands."""


@dataclass(frozen=True, slots=True)
class LoadedCounters:
    """A counters file that was read, and the SHA-256 of its content."""

    counters: Counters
    sha256: str

    def state(self) -> ConfigState:
        """The state from now on, with this file in use."""
        return ConfigState(self.sha256, successful=True, at=time.time(), rejected_rows=len(self.counters.problems))

    def log_problems(self) -> None:
        """Log the first rows that cannot be used, and those whose fields are not read, and how many more there are."""
        _log_rows(self.counters.problems, "cannot be used")
        _log_rows(self.counters.unread, "have fields that are not read")


class UnusableCountersError(ConfigError):
    """A counters file cannot be used. The text names it; `problem` is what is wrong, without its path and content."""

    def __init__(self, message: str, problem: str) -> None:
        super().__init__(message)
        self.problem = problem

    def for_response(self) -> str:
        """The message for an HTTP response, in which no path may be."""
        return f"the counters file {self.problem}; the log names it"


def load_counters(path: Path | None) -> LoadedCounters:
    """Read the file, or the built-in default without one.

    Raises UnusableCountersError when it cannot be read, or no row of it can be used.
    """
    file = str(path or BUILT_IN.name)
    try:
        content = BUILT_IN.read_bytes() if path is None else regular_file.read(path, MAX_COUNTERS_BYTES)
    except UnreadableFileError as error:
        problem = f"cannot be read: {error}"
        raise UnusableCountersError(f"counters file {file} {problem}", problem) from None
    return load_content(content, f"counters file {file}", file)


def load_content(content: bytes, what: str, file: str = "") -> LoadedCounters:
    """Check the content of a counters file, named `what` in messages about all of it and `file` (or that) in others.

    Raises UnusableCountersError when it is no list of fields, or no row of it can be used.
    """
    file = file or what
    try:
        counters = parse(decode(content), file)
    except ConfigFileError as error:
        where = "" if error.line is None else f" on line {error.line}"
        problem = f"cannot be used{where}: {error.problem}"
        raise UnusableCountersError(f"{what} {problem}", "is not a list of fields") from None
    return LoadedCounters(_usable(counters, what), hashlib.sha256(content).hexdigest())


def _usable(counters: Counters, what: str) -> Counters:
    if counters.usable:
        return counters
    first = f"the first problem: {counters.problems[0]}" if counters.problems else "it has none"
    message = f"no row of the {what} can be used; {first}"
    raise UnusableCountersError(message, "has no row that can be used")


def load_fields(fields: FieldList) -> LoadedCounters:
    """Check the list of fields of a configuration file. Raises UnusableCountersError when no row can be used."""
    counters = counters_of(fields.rows, fields.file)
    return LoadedCounters(_usable(counters, f"configuration file {fields.file}"), fields.sha256)


class CountersSource(Protocol):
    """Where the counters of a running exporter are from. For use by one thread."""

    @property
    def failure(self) -> str:
        """The message of the failure since which no read succeeded; empty when the last one did."""
        ...

    def due(self) -> bool:
        """Whether to read."""
        ...

    def read(self) -> LoadedCounters:
        """Return the counters. Raises UnusableCountersError."""
        ...


class FixedCounters:
    """The fields of a configuration file, which is read at the start alone."""

    failure = ""

    def __init__(self, fields: FieldList) -> None:
        self._fields = fields

    def due(self) -> bool:
        """Whether to read: never, because nothing can have changed."""
        return False

    def read(self) -> LoadedCounters:
        """Return the counters. Raises UnusableCountersError when no row can be used."""
        return load_fields(self._fields)


class CountersWatch:
    """The counters file of a running exporter. For use by one thread."""

    def __init__(self, given: Path | None, usual: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """`given` is the file that a flag or variable names. Without one, `usual` is read once something is there.

        Until then it is the built-in list; afterwards that list never replaces what was at `usual`. `clock` is in
        seconds, for the pauses after failures.
        """
        self._path = given
        self._usual = usual
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._failure = ""
        self._signature: tuple[int, ...] | None = None

    def due(self) -> bool:
        """Whether the file is to be read: it is not the one that was read last, or that failed a while ago.

        A file that could not be read may be readable later without any change, as after a fault of its file system.
        """
        return self._look() != self._signature or bool(self._failure and self._backoff.due)

    def read(self) -> LoadedCounters:
        """Read the file. Raises UnusableCountersError; then it is due again after a pause, which doubles."""
        # Taken before the file is read: a change during the reading makes it due again.
        self._signature = self._look()
        try:
            loaded = load_counters(self._path)
        except UnusableCountersError as error:
            self._failure = str(error)
            self._backoff.failed()
            raise
        self._failure = ""
        self._backoff.reset()
        return loaded

    @property
    def failure(self) -> str:
        """The message of the failure since which no read succeeded; empty when the last one did."""
        return self._failure

    def _look(self) -> tuple[int, ...]:
        """Numbers that change when the file does; none while there is only the built-in list."""
        if self._path is None and _is_something_at(self._usual):
            self._path = self._usual
        return regular_file.signature(self._path) if self._path else ()


def _is_something_at(path: Path) -> bool:
    """Whether anything is there, however unusable, or it cannot be known: to read it is an error with a message."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _log_rows(problems: Sequence[str], what: str) -> None:
    for problem in problems[:LOGGED_PROBLEMS]:
        logger.warning("%s", problem)
    if len(problems) > LOGGED_PROBLEMS:
        logger.warning("%d more rows of the counters file %s", len(problems) - LOGGED_PROBLEMS, what)
