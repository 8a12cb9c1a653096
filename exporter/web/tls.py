"""Server-side TLS: makes a TLS context of certificate, key and client CA, and compares a client's names."""

import contextlib
import ipaddress
import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Pem = Path | str
"""Where a certificate or key is: in a file, or in this text."""


class TlsError(Exception):
    """No TLS context can be made of the files. The text is one message that names the file, or certificate and key."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a server, what its clients must present, and which TLS is spoken."""

    certificate: Pem
    key: Pem
    client_ca: Pem | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    max_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: str | None = None
    """OpenSSL's names of the suites of TLS 1.2, joined by `:`; None means OpenSSL's own choice."""
    curve: str | None = None
    """OpenSSL's name of the only curve for the key exchange; None means OpenSSL's own choice."""
    server_chooses: bool = True
    """Whether the server's order of cipher suites counts, not the client's."""
    allowed_sans: frozenset[str] = frozenset()
    """A client's certificate must be for one of these names; empty means for any."""

    def paths(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return tuple(pem for pem in (self.certificate, self.key, self.client_ca) if isinstance(pem, Path))


def _no_passphrase() -> str:
    """Return an empty passphrase: without a callback OpenSSL asks for one on the terminal, and waits."""
    return ""


def context(files: TlsFiles) -> ssl.SSLContext:
    """Make a context of the files as they are now. Raises TlsError."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version, made.maximum_version = files.min_version, files.max_version
    if not files.server_chooses:
        made.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    named = f"{_name(files.certificate)} with {_name(files.key)}"
    try:
        for path in files.paths():
            path.read_bytes()
        with _as_file(files.certificate) as certificate, _as_file(files.key) as key:
            made.load_cert_chain(certificate, key, _no_passphrase)
        if files.client_ca:
            named = _name(files.client_ca)
            with _as_file(files.client_ca) as authority:
                made.load_verify_locations(authority)
        named = "cipher_suites or curve_preferences"
        if files.ciphers is not None:
            made.set_ciphers(files.ciphers)
        if files.curve is not None:
            made.set_ecdh_curve(files.curve)
    except ssl.SSLError as error:
        raise TlsError(f"{named} cannot be used for TLS: {error.reason or 'not readable as PEM'}") from error
    except OSError as error:
        raise TlsError(f'"{error.filename}" cannot be read: {error.strerror}') from error
    except ValueError as error:
        raise TlsError(f"{named} cannot be used for TLS: {error}") from error
    made.verify_mode = files.client_auth
    return made


def _name(pem: Pem) -> str:
    return f'"{pem}"' if isinstance(pem, Path) else "the text in the web configuration file"


@contextlib.contextmanager
def _as_file(pem: Pem) -> Iterator[str]:
    """The path of a file with this PEM: Python's ssl module reads a key from nothing else."""
    if isinstance(pem, Path):
        yield str(pem)
        return
    descriptor = os.memfd_create("pem")  # in memory alone, so that the key is never on a disk
    try:
        os.write(descriptor, pem.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The subject alternative names of a certificate as Python's ssl module gives it: DNS, IP, e-mail and URI."""
    pairs: Iterable[tuple[str, str]] = certificate.get("subjectAltName", ())
    return frozenset(str(ipaddress.ip_address(name)) if kind == "IP Address" else name for kind, name in pairs)
