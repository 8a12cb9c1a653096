"""Logging to one stream, as logfmt or JSON, and the rule "one line per change of state".

The two formats carry the same keys as dcgm-exporter's logs: `time`, `level`, `msg`.
"""

import json
import logging
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Literal, TextIO

Format = Literal["text", "json"]

LEVELS = ("debug", "info", "warning", "error")

_KEYS_KEPT = 1000
"""States remembered by one `Changes`; the one untouched for longest goes first."""


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


def _bare(text: str) -> bool:
    return bool(text) and text.isprintable() and not any(mark in text for mark in ' "=\\')


class Logfmt(logging.Formatter):
    """`key=value` pairs; whatever could break a line or a pair is quoted and escaped."""

    def format(self, record: logging.LogRecord) -> str:
        pairs = _fields(record).items()
        return " ".join(f"{key}={text if _bare(text) else json.dumps(text)}" for key, text in pairs)


class Json(logging.Formatter):
    """One object a line, keys in the same order as in logfmt."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_fields(record))


def setup(stream: TextIO, format: Format = "text", level: str = "info") -> None:
    """Sends everything at `level` and above to `stream`, and nothing anywhere else.

    Libraries speak from warnings on, unless debugging: their progress is not the operator's business.
    """
    target = logging.StreamHandler(stream)
    target.setFormatter(Json() if format == "json" else Logfmt())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(target)
    root.setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    logging.getLogger("exporter").setLevel(level.upper())
    logging.captureWarnings(capture=True)


class Changes:
    """Logs a state when it begins, changes or ends, however often it is reported in between.

    Safe to use from several threads.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lock = threading.Lock()
        self._said: OrderedDict[str, str] = OrderedDict()

    def report(self, key: str, message: str, level: int = logging.WARNING) -> bool:
        """States that `key` is now as `message` says; whether that was news, and so was logged."""
        with self._lock:
            news = self._said.get(key) != message
            self._said[key] = message
            self._said.move_to_end(key)
            if len(self._said) > _KEYS_KEPT:
                self._said.popitem(last=False)
        if news:
            self._logger.log(level, "%s", message)
        return news

    def clear(self, key: str, message: str) -> bool:
        """States that nothing is wrong with `key` (any more); logs `message` only where something was."""
        with self._lock:
            news = self._said.pop(key, None) is not None
        if news:
            self._logger.info("%s", message)
        return news
