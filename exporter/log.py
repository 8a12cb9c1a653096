"""Logging to one stream as logfmt or JSON, and logs that write a repeated state or message only once.

Both formats have the keys of dcgm-exporter's logs: `time`, `level`, `msg`.
"""

import json
import logging
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Literal, TextIO

Format = Literal["text", "json"]

LEVELS = ("debug", "info", "warning", "error")

MAX_STATES = 1000
"""How many states or messages one log remembers: bounds memory when names come from outside."""
MAX_STATES_OF_ONE = 32
"""How many states of one subject it remembers, for the same purpose: messages may serve as states."""


def _fields(record: logging.LogRecord) -> dict[str, str]:
    at = datetime.fromtimestamp(record.created, tz=UTC)
    fields = {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": "WARN" if record.levelno == logging.WARNING else record.levelname,
        "msg": record.getMessage(),
        "logger": record.name,
    }
    if record.exc_info:
        fields["traceback"] = logging.Formatter().formatException(record.exc_info)
    return fields


def _needs_no_quotes(text: str) -> bool:
    return bool(text) and text.isprintable() and not any(mark in text for mark in ' "=\\')


class LogfmtFormatter(logging.Formatter):
    """Writes `key=value` pairs; a value that could break a line or a pair is quoted and escaped."""

    def format(self, record: logging.LogRecord) -> str:
        pairs = _fields(record).items()
        return " ".join(f"{key}={text if _needs_no_quotes(text) else json.dumps(text)}" for key, text in pairs)


class JsonFormatter(logging.Formatter):
    """Writes one JSON object per line, with the keys in the same order as in logfmt."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_fields(record))


def setup(stream: TextIO, format: Format = "text", level: str = "info") -> None:
    """Send every record at `level` and above to `stream`, and none anywhere else.

    Records of libraries are logged from WARNING on, or from DEBUG when `level` is debug.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if format == "json" else LogfmtFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    logging.getLogger("exporter").setLevel(level.upper())
    logging.captureWarnings(capture=True)


class StateLog:
    """Logs each state of a subject once from its beginning to its end, however often it is reported. Thread-safe.

    Of a subject that alternates between two states, each is logged once until it is in none. Remembers at most
    MAX_STATES subjects and forgets the one that was reported longest ago.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lock = threading.Lock()
        self._states: OrderedDict[str, set[str]] = OrderedDict()
        """By key, the states that were reported since it was last in none."""

    def report(self, key: str, message: str, *, state: str = "", level: int = logging.WARNING) -> bool:
        """Report that `key` is in a state; log `message` unless that state was. Returns whether it was logged.

        `state` names the state; without it the message does. Give it where the message varies within one state.
        """
        now = state or message
        with self._lock:
            states = self._states.setdefault(key, set())
            changed = now not in states
            if len(states) >= MAX_STATES_OF_ONE:
                states.clear()
            states.add(now)
            self._states.move_to_end(key)
            if len(self._states) > MAX_STATES:
                self._states.popitem(last=False)
        if changed:
            self._logger.log(level, "%s", message)
        return changed

    def clear(self, key: str, message: str) -> bool:
        """Report that `key` is in no state; log `message` if it was in one. Returns whether it was logged."""
        with self._lock:
            changed = self._states.pop(key, None) is not None
        if changed:
            self._logger.info("%s", message)
        return changed

    def reported(self, key: str, state: str) -> bool:
        """Whether `key` was in this state since it was last in none."""
        with self._lock:
            return state in self._states.get(key, ())

    def keys(self) -> frozenset[str]:
        """The keys that are in a state now."""
        with self._lock:
            return frozenset(self._states)


class OnceLog:
    """Logs each distinct message once, and at most MAX_STATES of them in all. For use by one thread."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._logged: set[str] = set()

    def warning(self, message: str) -> None:
        """Log the message unless it was logged before or too many others were."""
        if message not in self._logged and len(self._logged) < MAX_STATES:
            self._logged.add(message)
            self._logger.warning("%s", message)
