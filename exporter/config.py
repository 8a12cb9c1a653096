"""Options that both programs have (serving, log), and the error for a configuration that cannot be used.

Each program's own configuration is in `exporter/node/config.py` and `exporter/cluster/config.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from exporter.duration import parse_duration

DEFAULT_INTERVAL_SECONDS = 30.0
"""Time between two collections unless a flag sets another."""
MAX_INTERVAL_SECONDS = 3600
DEFAULT_READ_SECONDS, DEFAULT_WRITE_SECONDS = 10.0, 30.0
"""How long a client may take to send a request, and a response to be written."""


class ConfigError(Exception):
    """The configuration cannot be used. The message names the flag, variable, or file and line, and the value."""


class ConfigFileError(ConfigError):
    """A configuration file cannot be used. The text is one message with file, line and key."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {problem}")
        self.line = line
        """None where the whole file is meant."""
        self.problem = problem


class Arguments(SimpleNamespace):
    """The parsed command line and environment: the value of each flag, under its name with `_` for `-`."""

    command: str
    output: str
    """To be printed instead of running the command; empty where it is to run."""
    operands: tuple[str, ...]
    """The words beside the flags, of a command that takes some."""
    warnings: tuple[str, ...]
    """Messages for the log, about what was given and is not used."""
    given: frozenset[str]
    """The names of the flags whose values are not their defaults: given as flag or variable."""


@dataclass(frozen=True, slots=True)
class WebOptions:
    """Where and how HTTP is served. `config_file` is a Prometheus exporter web configuration file, if any."""

    address: str
    config_file: Path | None
    systemd_socket: bool
    health_address: str = ""
    """Where the health endpoints are served without TLS as well; empty for nowhere."""
    status_page: bool = True
    """Whether `/` shows the state of the program, or only links."""
    read_seconds: float = DEFAULT_READ_SECONDS
    """How long a client may take to send a request."""
    write_seconds: float = DEFAULT_WRITE_SECONDS
    """How long a response may take."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Format (`text` or `json`) and level of the log."""

    format: str
    debug: bool


def web_options(arguments: Arguments) -> WebOptions:
    """Take the serving options from the command line; both programs have the same."""
    file = Path(arguments.web_config_file) if arguments.web_config_file else None
    return WebOptions(
        arguments.address,
        file,
        arguments.web_systemd_socket,
        arguments.health_address,
        arguments.status_page == "on",
        _timeout(arguments.web_read_timeout) or DEFAULT_READ_SECONDS,
        _timeout(arguments.web_write_timeout) or DEFAULT_WRITE_SECONDS,
    )


def web_warnings(arguments: Arguments) -> Iterator[str]:
    """Messages about timeouts that are no durations above 0: as in dcgm-exporter, the default is used then."""
    for name, text in (
        ("--web-read-timeout", arguments.web_read_timeout),
        ("--web-write-timeout", arguments.web_write_timeout),
    ):
        if _timeout(text) is None:
            yield f"{name}: {text!r} is not a duration such as 30s; the default is used"


def _timeout(text: str) -> float | None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return None
    return seconds if seconds > 0 else None


def log_options(arguments: Arguments) -> LogOptions:
    """Take the log options from the command line; both programs have the same."""
    return LogOptions(arguments.log_format, arguments.debug)
