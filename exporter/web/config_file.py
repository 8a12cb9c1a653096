"""Reads the web configuration file of Prometheus exporters (`--web-config-file`) into TLS files and response headers.

A key that is not supported is an error and never ignored, because most keys restrict access.
"""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from exporter.config import ConfigError
from exporter.web.tls import TlsFiles

_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "RequestClientCert": ssl.CERT_NONE,  # such a certificate would not be verified, so it is not asked for
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_NULL = "tag:yaml.org,2002:null"
"""YAML's tag of an empty value."""
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_HEADERS = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)
_TLS_KEYS = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version")


class WebConfigError(ConfigError):
    """The web configuration file cannot be used. The text is one message with file, line and key."""


@dataclass(frozen=True, slots=True)
class WebConfigFile:
    """TLS, if any, and the headers that are sent with every response."""

    tls: TlsFiles | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ConfigNode:
    """A key of the file with its value and its place, for error messages.

    A message quotes a value only where it comes from a known list: the file may contain secrets.
    """

    path: Path
    key: str
    node: yaml.Node

    def error(self, problem: str) -> WebConfigError:
        """Make the error that names this place."""
        where = self.node.start_mark
        return WebConfigError(f"{self.path}:{where.line + 1}: {self.key}: {problem}")

    def text(self) -> str:
        """The value as a text. Raises WebConfigError when it is a mapping, a list or empty."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL:
            raise self.error("must be a text")
        return str(self.node.value)

    def entries(self) -> Iterator["_ConfigNode"]:
        """The entries of a mapping; an empty value is an empty mapping. Raises WebConfigError."""
        if self.node.tag == _NULL:
            return
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("must have keys and values")
        seen: set[str] = set()
        for key, value in self.node.value:
            # The error names the key's line, also when the value begins a line below.
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name in seen:
                raise _ConfigNode(self.path, name, key).error("is given twice")
            seen.add(name)
            yield _ConfigNode(self.path, name, value)


def load(path: Path) -> WebConfigFile:
    """Read the file; relative paths in it start at the folder of the file. Raises WebConfigError."""
    tls: TlsFiles | None = None
    headers: dict[str, str] = {}
    for entry in _read(path).entries():
        match entry.key:
            case "tls_server_config":
                tls = _tls(entry)
            case "http_server_config":
                headers = _http(entry)
            case "basic_auth_users":
                raise entry.error("passwords are not supported: use client certificates (client_auth_type)")
            case _:
                raise entry.error("unknown key; known: tls_server_config, http_server_config")
    return WebConfigFile(tls, headers)


def _read(path: Path) -> _ConfigNode:
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise WebConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WebConfigError(f"{path}: is not UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise WebConfigError(f"{path}{line}: {getattr(error, 'problem', None) or 'is not YAML'}") from error
    if root is None:
        return _ConfigNode(path, "file", yaml.ScalarNode(_NULL, ""))
    return _ConfigNode(path, "file", root)


def _tls(section: _ConfigNode) -> TlsFiles | None:
    given: dict[str, _ConfigNode] = {}
    for entry in section.entries():
        if entry.key not in _TLS_KEYS:
            raise entry.error(f"not supported; supported here: {', '.join(_TLS_KEYS)}")
        given[entry.key] = entry
    if not given:
        return None
    for key in ("cert_file", "key_file"):
        if key not in given:
            raise section.error(f"{key} is missing")
    found = {key: _file(entry) for key, entry in given.items() if key.endswith("_file")}
    auth = _one_of(given.get("client_auth_type"), _CLIENT_AUTH, "NoClientCert")
    _check_client_ca(given, auth)
    version = _one_of(given.get("min_version"), _VERSIONS, "TLS12")
    return TlsFiles(found["cert_file"], found["key_file"], found.get("client_ca_file"), auth, version)


def _check_client_ca(given: dict[str, _ConfigNode], auth: ssl.VerifyMode) -> None:
    """Reject a client CA that is not used, and verification without one: both look safer than they are."""
    if auth is not ssl.CERT_NONE and "client_ca_file" not in given:
        raise given["client_auth_type"].error("needs client_ca_file")
    if auth is ssl.CERT_NONE and "client_ca_file" in given:
        raise given["client_ca_file"].error("has no effect without a client_auth_type that verifies")


def _one_of(entry: _ConfigNode | None, choices: dict[str, Any], default: str) -> Any:
    if entry is None:
        return choices[default]
    try:
        return choices[entry.text()]
    except KeyError:
        raise entry.error(f'"{entry.text()}" is not supported; choose from {", ".join(choices)}') from None


def _file(entry: _ConfigNode) -> Path:
    text = entry.text()
    if not text:
        raise entry.error("must be the name of a file")
    return entry.path.parent / text


def _http(section: _ConfigNode) -> dict[str, str]:
    headers: dict[str, str] = {}
    for entry in section.entries():
        if entry.key == "headers":
            headers = dict(_headers(entry))
        elif entry.key != "http2":  # accepted and ignored: gpugauge serves HTTP/1.1 only
            raise entry.error("unknown key; known: headers, http2")
    return headers


def _headers(section: _ConfigNode) -> Iterator[tuple[str, str]]:
    for entry in section.entries():
        if entry.key not in _HEADERS:
            raise entry.error(f"not a header that may be set; choose from {', '.join(_HEADERS)}")
        if not (entry.text().isascii() and entry.text().isprintable()):
            raise entry.error("must be one line of printable ASCII")
        yield entry.key, entry.text()
