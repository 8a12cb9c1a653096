"""Server-side TLS whose files may change while it serves: each connection gets the newest pair that works."""

import logging
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exporter.log import Changes


class TlsError(Exception):
    """Why no TLS context can be made of the given files: one sentence."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where certificate and key are, and what is asked of clients."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2

    def paths(self) -> tuple[Path, ...]:
        return (self.certificate, self.key, *((self.client_ca,) if self.client_ca else ()))


def _no_passphrase() -> str:
    """Without this, OpenSSL would ask the terminal for the passphrase of an encrypted key, and wait."""
    return ""


def context(files: TlsFiles) -> ssl.SSLContext:
    """A context made of the files as they are now; TlsError names the file that does not serve."""
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


Signature = tuple[tuple[int, int, int] | None, ...]


def _signature(files: TlsFiles) -> Signature:
    def of(path: Path) -> tuple[int, int, int] | None:
        try:
            found = os.stat(path)  # noqa: PTH116 follows the links that Kubernetes swaps
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    return tuple(of(path) for path in files.paths())


class Certificates:
    """The context to use now. Files are looked at when a client comes, at most once per `every` seconds."""

    def __init__(self, files: TlsFiles, *, every: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises TlsError where the files do not work to begin with."""
        self._files = files
        self._every = every
        self._clock = clock
        self._logger = logging.getLogger(__name__)
        self._changes = Changes(self._logger)
        self._seen = _signature(files)
        self._context = context(files)
        self._looked = clock()

    def current(self) -> ssl.SSLContext:
        now = self._clock()
        if now - self._looked >= self._every:
            self._looked = now
            self._look()
        return self._context

    def _look(self) -> None:
        seen = _signature(self._files)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._context = context(self._files)
        except TlsError as error:
            self._changes.report("tls", f"the changed TLS files do not work, the former ones stay in use: {error}")
        else:
            news = "the changed TLS files are in use"
            if not self._changes.clear("tls", news):
                self._logger.info(news)
