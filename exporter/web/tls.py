"""Server-side TLS: loads certificate, key and client CA into a TLS context, and loads them again when a file changes.

A new connection gets the context that was last loaded without an error.
"""

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exporter.log import StateLog


class TlsError(Exception):
    """No TLS context can be made of the files. The text is one message that names the file, or certificate and key."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a server, what its clients must present, and the lowest TLS version."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2

    def paths(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (self.certificate, self.key, *((self.client_ca,) if self.client_ca else ()))


def _no_passphrase() -> str:
    """Return an empty passphrase: without a callback OpenSSL asks for one on the terminal, and waits."""
    return ""


def context(files: TlsFiles) -> ssl.SSLContext:
    """Make a context of the files as they are now. Raises TlsError."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = files.min_version
    named = f'"{files.certificate}" with "{files.key}"'
    try:
        for path in files.paths():
            path.read_bytes()
        made.load_cert_chain(files.certificate, files.key, _no_passphrase)
        if files.client_ca:
            named = f'"{files.client_ca}"'
            made.load_verify_locations(files.client_ca)
    except ssl.SSLError as error:
        raise TlsError(f"{named} cannot be used for TLS: {error.reason or 'not readable as PEM'}") from error
    except OSError as error:
        raise TlsError(f'"{error.filename}" cannot be read: {error.strerror}') from error
    made.verify_mode = files.client_auth
    return made


FileSignature = tuple[tuple[int, int, int] | None, ...]
"""Inode, size and modification time of each file; None for a file that has none of them."""


def _signature(files: TlsFiles) -> FileSignature:
    def of(path: Path) -> tuple[int, int, int] | None:
        try:
            found = path.stat()  # of the target: Kubernetes replaces symbolic links
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    return tuple(of(path) for path in files.paths())


class ReloadingCertificates:
    """Gives each new connection the TLS context that was last loaded without an error.

    The files are checked when a client connects, at most once per `every` seconds.
    """

    def __init__(self, files: TlsFiles, *, every: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises TlsError when the files cannot be used at the start."""
        self._files = files
        self._every = every
        self._clock = clock
        self._logger = logging.getLogger(__name__)
        self._failures = StateLog(self._logger)
        self._last_signature = _signature(files)
        self._context = context(files)
        self._checked_at = clock()

    def current(self) -> ssl.SSLContext:
        """The context to use now; reads changed files first when it is time to check."""
        now = self._clock()
        if now - self._checked_at >= self._every:
            self._checked_at = now
            self._reload_if_changed()
        return self._context

    def _reload_if_changed(self) -> None:
        signature = _signature(self._files)
        if signature == self._last_signature:
            return
        self._last_signature = signature
        try:
            self._context = context(self._files)
        except TlsError as error:
            self._failures.report("tls", f"the changed TLS files cannot be used, the former ones stay in use: {error}")
        else:
            message = "the changed TLS files are in use"
            if not self._failures.clear("tls", message):
                self._logger.info(message)
