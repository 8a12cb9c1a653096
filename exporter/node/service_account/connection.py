"""Connections with the pod's service account, by the standard library alone.

The node exporter does without the `kubernetes` client, which takes more memory than everything else that it loads.
Token and authority are read for each connection, because Kubernetes replaces both.
"""

import http.client
import ssl
import urllib.parse

from exporter.node.service_account.account import ServiceAccount

TIMEOUT_SECONDS = 10.0
"""For each step of a request."""


def connect(account: ServiceAccount) -> http.client.HTTPConnection:
    """A connection that is not open yet. Raises OSError (also ssl.SSLError) where the authority cannot be read."""
    parts = urllib.parse.urlsplit(account.url)
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
    trusted = _trusted(account)
    return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS, context=trusted)


def _trusted(account: ServiceAccount) -> ssl.SSLContext:
    if account.verify:
        return ssl.create_default_context(cafile=str(account.authority or account.folder / "ca.crt"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def headers(account: ServiceAccount) -> dict[str, str]:
    """The headers of a request. Raises OSError and ValueError where the token cannot be read."""
    token = (account.folder / "token").read_text(encoding="ascii").strip()
    return {"Authorization": f"Bearer {token}", "Accept": "application/json"}
