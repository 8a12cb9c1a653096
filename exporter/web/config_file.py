"""Reads the web configuration file of Prometheus exporters (`--web-config-file`): TLS, passwords and response headers.

The format is that of Prometheus's exporter-toolkit. An unknown key is an error, because most keys restrict access.
Where Python cannot do exactly what a key says, something stricter is done, which `warnings` state.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exporter.config_node import ConfigNode, read
from exporter.web.tls import TlsFiles
from exporter.web.tls_section import tls_files

_HEADERS = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)
SECTIONS = ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")
_BCRYPT = re.compile(r"\$2[abxy]\$(\d\d)\$[./A-Za-z0-9]{53}")
_COSTS = range(4, 16)
"""A check takes about 50 ms at cost 10, and twice as long with each step."""


@dataclass(frozen=True, slots=True)
class WebConfigFile:
    """What the file says."""

    tls: TlsFiles | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every response."""
    users: Mapping[str, bytes] = field(default_factory=dict)
    """The bcrypt hash of each user's password; anybody may read /metrics where there is none."""
    warnings: tuple[str, ...] = ()
    """What is done otherwise than the file says."""


def load(path: Path) -> WebConfigFile:
    """Read the file; relative paths in it start at the folder of the file. Raises ConfigFileError."""
    sections: dict[str, ConfigNode] = {}
    for entry in read(path).entries():
        if entry.key not in SECTIONS:
            raise entry.error(f"unknown key; known: {', '.join(SECTIONS)}")
        sections[entry.key] = entry
    warnings: list[str] = []
    tls, http, users, limit = (sections.get(name) for name in SECTIONS)
    if limit is not None:
        warnings.append(_rate_limit(limit))
    return WebConfigFile(
        tls_files(tls, warnings) if tls else None,
        _http(http) if http else {},
        dict(_users(users)) if users else {},
        tuple(warnings),
    )


def _users(section: ConfigNode) -> Iterator[tuple[str, bytes]]:
    for entry in section.entries():
        found = _BCRYPT.fullmatch(entry.text())
        # The message has no name of a user either: whoever reads the log need not know it.
        named = ConfigNode(entry.path, section.key, entry.node)
        if found is None:
            raise named.error("a password must be a bcrypt hash, such as htpasswd -nB makes")
        if int(found[1]) not in _COSTS:
            raise named.error(f"the cost of a bcrypt hash must be from {_COSTS.start} to {_COSTS.stop - 1}")
        yield entry.key, entry.text().encode()


def _rate_limit(section: ConfigNode) -> str:
    for entry in section.entries():
        if entry.key not in ("interval", "burst"):
            raise entry.error("unknown key; known: interval, burst")
        entry.text()
    return f"{section.place}: rate_limit has no effect: a response is made once and sent to everybody"


def _http(section: ConfigNode) -> dict[str, str]:
    headers: dict[str, str] = {}
    for entry in section.entries():
        if entry.key == "headers":
            headers = dict(_headers(entry))
        elif entry.key == "http2":
            entry.boolean()  # and nothing else: HTTP/1.1 alone is served, which every client speaks
        else:
            raise entry.error("unknown key; known: headers, http2")
    return headers


def _headers(section: ConfigNode) -> Iterator[tuple[str, str]]:
    for entry in section.entries():
        if entry.key not in _HEADERS:
            raise entry.error(f"not a header that may be set; choose from {', '.join(_HEADERS)}")
        if not (entry.text().isascii() and entry.text().isprintable()):
            raise entry.error("must be one line of printable ASCII")
        yield entry.key, entry.text()
