"""Options that both programs have (serving, log), and the error for a configuration that cannot be used.

Each program's own configuration is in `exporter/node/config.py` and `exporter/cluster/config.py`.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

DEFAULT_INTERVAL_SECONDS = 30.0
"""Time between two collections unless a flag sets another."""
MAX_INTERVAL_SECONDS = 3600


class ConfigError(Exception):
    """The configuration cannot be used. The message names the flag, variable, or file and line, and the value."""


@dataclass(frozen=True, slots=True)
class WebOptions:
    """Where and how HTTP is served. `config_file` is a Prometheus exporter web configuration file, if any."""

    address: str
    config_file: Path | None
    systemd_socket: bool


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Format (`text` or `json`) and level of the log."""

    format: str
    debug: bool


def parse_bool(text: str) -> bool:
    """Read a Boolean as Go's `strconv.ParseBool` does; an empty text is false. Raises ConfigError."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False", ""}:
        return False
    raise ConfigError(f"{text!r} is neither true nor false")


def parse_names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; blanks around names are removed and empty names left out."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def web_options(arguments: argparse.Namespace) -> WebOptions:
    """Take the serving options from the command line; both programs have the same."""
    file = Path(arguments.web_config_file) if arguments.web_config_file else None
    return WebOptions(arguments.address, file, arguments.web_systemd_socket)


def log_options(arguments: argparse.Namespace) -> LogOptions:
    """Take the log options from the command line; both programs have the same."""
    return LogOptions(arguments.log_format, arguments.debug)
