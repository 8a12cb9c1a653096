"""The web configuration file of Prometheus exporters (`--web-config-file`), as far as this exporter offers it.

A key that is not offered is refused, never passed over: most of them restrict access.
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
    "RequestClientCert": ssl.CERT_NONE,  # asked for and not judged: without consequence
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
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
    """What is wrong with a web configuration file: one sentence with file, line and key."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    """TLS, if any, and the headers that go out with every answer."""

    tls: TlsFiles | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Node:
    """A place in the file, so that a complaint can name it. Values are never quoted unless from a known list."""

    path: Path
    key: str
    node: yaml.Node

    def wrong(self, what: str) -> WebConfigError:
        where = self.node.start_mark
        return WebConfigError(f"{self.path}:{where.line + 1}: {self.key}: {what}")

    def text(self) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == "tag:yaml.org,2002:null":
            raise self.wrong("wanted a text")
        return str(self.node.value)

    def entries(self) -> Iterator["_Node"]:
        """The values of a mapping, each with its key; an empty value is an empty mapping."""
        if self.node.tag == "tag:yaml.org,2002:null":
            return
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("wanted keys and values")
        seen: set[str] = set()
        for key, value in self.node.value:
            # The mark of the key is where people look, also when the value begins a line further down.
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if name in seen:
                raise _Node(self.path, name, key).wrong("given twice")
            seen.add(name)
            yield _Node(self.path, name, value)


def load(path: Path) -> WebConfig:
    """Reads the file; relative paths in it start at its own folder. Raises WebConfigError."""
    tls: TlsFiles | None = None
    headers: dict[str, str] = {}
    for entry in _read(path).entries():
        match entry.key:
            case "tls_server_config":
                tls = _tls(entry)
            case "http_server_config":
                headers = _http(entry)
            case "basic_auth_users":
                raise entry.wrong("passwords are not supported: use client certificates (client_auth_type)")
            case _:
                raise entry.wrong("unknown key; known: tls_server_config, http_server_config")
    return WebConfig(tls, headers)


def _read(path: Path) -> _Node:
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
        return _Node(path, "file", yaml.ScalarNode("tag:yaml.org,2002:null", ""))
    return _Node(path, "file", root)


def _tls(section: _Node) -> TlsFiles | None:
    given: dict[str, _Node] = {}
    for entry in section.entries():
        if entry.key not in _TLS_KEYS:
            raise entry.wrong(f"not supported; supported here: {', '.join(_TLS_KEYS)}")
        given[entry.key] = entry
    if not given:
        return None
    for key in ("cert_file", "key_file"):
        if key not in given:
            raise section.wrong(f"{key} is missing")
    found = {key: _file(entry) for key, entry in given.items() if key.endswith("_file")}
    auth = _one_of(given.get("client_auth_type"), _CLIENT_AUTH, "NoClientCert")
    _agree(given, auth)
    version = _one_of(given.get("min_version"), _VERSIONS, "TLS12")
    return TlsFiles(found["cert_file"], found["key_file"], found.get("client_ca_file"), auth, version)


def _agree(given: dict[str, _Node], auth: ssl.VerifyMode) -> None:
    """A client CA that is not used, or verification without one, would look safer than it is."""
    if auth is not ssl.CERT_NONE and "client_ca_file" not in given:
        raise given["client_auth_type"].wrong("needs client_ca_file")
    if auth is ssl.CERT_NONE and "client_ca_file" in given:
        raise given["client_ca_file"].wrong("has no effect without a client_auth_type that verifies")


def _one_of(entry: _Node | None, choices: dict[str, Any], otherwise: str) -> Any:
    if entry is None:
        return choices[otherwise]
    try:
        return choices[entry.text()]
    except KeyError:
        raise entry.wrong(f'"{entry.text()}" is not supported; choose from {", ".join(choices)}') from None


def _file(entry: _Node) -> Path:
    text = entry.text()
    if not text:
        raise entry.wrong("wanted the name of a file")
    return entry.path.parent / text


def _http(section: _Node) -> dict[str, str]:
    headers: dict[str, str] = {}
    for entry in section.entries():
        if entry.key == "headers":
            headers = dict(_headers(entry))
        elif entry.key != "http2":  # HTTP/1.1 is served whatever it says
            raise entry.wrong("unknown key; known: headers, http2")
    return headers


def _headers(section: _Node) -> Iterator[tuple[str, str]]:
    for entry in section.entries():
        if entry.key not in _HEADERS:
            raise entry.wrong(f"not a header that may be set; choose from {', '.join(_HEADERS)}")
        if not (entry.text().isascii() and entry.text().isprintable()):
            raise entry.wrong("wanted one line of printable ASCII")
        yield entry.key, entry.text()
