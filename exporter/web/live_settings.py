"""What the web configuration file says now: loaded again when it or one of its TLS files changes.

A new connection and each request get the settings that were last loaded without an error.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from exporter.config import ConfigError
from exporter.log import StateLog
from exporter.web.config_file import WebConfigFile, load
from exporter.web.settings import WebSettings
from exporter.web.tls import TlsError, context

_logger = logging.getLogger(__name__)


def made_of(config: WebConfigFile) -> WebSettings:
    """Make the settings, with the TLS files as they are now. Raises TlsError."""
    tls = config.tls
    return WebSettings(
        context(tls) if tls else None, tls.allowed_sans if tls else frozenset(), config.headers, config.users
    )


FileSignature = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and modification time of each file; None for a file that has none of them."""


def _signature(paths: tuple[Path, ...]) -> FileSignature:
    def of(path: Path) -> tuple[int, int, int] | None:
        try:
            found = path.stat()  # of the target: Kubernetes replaces symbolic links
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    return tuple(of(path) for path in paths)


class LiveSettings:
    """The settings of a web configuration file.

    The files are checked when they are asked for, at most once per `every` seconds.
    """

    def __init__(self, path: Path, *, every: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ConfigFileError or TlsError when the files cannot be used at the start."""
        self._path, self._every, self._clock = path, every, clock
        self._failures = StateLog(_logger)
        self._warned: tuple[str, ...] = ()
        config = load(path)
        self._paths = (path, *(config.tls.paths() if config.tls else ()))
        self._last_signature = _signature(self._paths)
        self._settings = made_of(config)
        self._warn(config)
        self._checked_at = clock()

    def current(self) -> WebSettings:
        """The settings to use now; reads changed files first when it is time to check."""
        now = self._clock()
        if now - self._checked_at >= self._every:
            self._checked_at = now
            self._reload_if_changed()
        return self._settings

    def _reload_if_changed(self) -> None:
        signature = _signature(self._paths)
        if signature == self._last_signature:
            return
        self._last_signature = signature
        try:
            self._reload()
        except (ConfigError, TlsError) as error:
            self._failures.report("web", f"the changed web files cannot be used, the former ones stay in use: {error}")
        else:
            message = "the changed web files are in use"
            if not self._failures.clear("web", message):
                _logger.info(message)

    def _reload(self) -> None:
        config = load(self._path)
        settings = made_of(config)
        if (settings.tls is None) != (self._settings.tls is None):
            raise ConfigError(f"{self._path}: TLS cannot be turned on or off without a restart")
        self._settings = settings
        self._paths = (self._path, *(config.tls.paths() if config.tls else ()))
        self._last_signature = _signature(self._paths)
        self._warn(config)

    def _warn(self, config: WebConfigFile) -> None:
        for warning in config.warnings:
            if warning not in self._warned:
                _logger.warning("%s", warning)
        self._warned = config.warnings
