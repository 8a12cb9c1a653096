"""The settings of the HTTP server that a web configuration file may set."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The settings of the HTTP server; by default those without a web configuration file."""

    tls: ssl.SSLContext | None = None
    """None serves plain HTTP."""
    allowed_sans: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, bytes] = field(default_factory=dict)
