"""Gets a ConfigMap from the API server with the pod's service account."""

import http.client
import json

from exporter.node.service_account.account import ConfigMapName, ServiceAccount
from exporter.node.service_account.connection import connect, headers

_MAX_BYTES = 8 << 20
"""A ConfigMap has at most 1 MiB, which JSON can write as six times as much."""


class ApiServerError(Exception):
    """A request failed. The text is one message without the token."""


def config_map(account: ServiceAccount, name: ConfigMapName, key: str) -> str:
    """The value of a key of a ConfigMap. Raises ApiServerError."""
    body = _get(account, f"/api/v1/namespaces/{name.namespace}/configmaps/{name.name}")
    try:
        data = json.loads(body).get("data") or {}
        text = data.get(key) if data else None
    except (ValueError, AttributeError, RecursionError):
        raise ApiServerError("the API server's answer is no ConfigMap") from None
    if not isinstance(text, str):
        raise ApiServerError(f"it has no key {key!r}; it has {', '.join(sorted(map(str, data))) or 'none'}")
    return text


def _get(account: ServiceAccount, path: str) -> bytes:
    if not account.url:
        raise ApiServerError("no API server is known: KUBERNETES_SERVICE_HOST is not set")
    try:
        sent, connection = headers(account), connect(account)
        try:
            connection.request("GET", path, headers=sent)
            response = connection.getresponse()
            body = response.read(_MAX_BYTES + 1)
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise ApiServerError(f"the API server cannot be asked: {error}") from None
    except ValueError:  # its text would be that of the header with the token
        raise ApiServerError("the API server cannot be asked: the token of the service account is not usable") from None
    if response.status != http.client.OK:
        raise ApiServerError(_answer(response.status, response.reason))
    if len(body) > _MAX_BYTES:
        raise ApiServerError(f"the API server's answer has more than {_MAX_BYTES} bytes")
    return body


def _answer(status: int, reason: str) -> str:
    means = {
        http.client.UNAUTHORIZED: "the token of the service account is not accepted",
        http.client.FORBIDDEN: "the service account may not get it; a Role must allow the verb get",
        http.client.NOT_FOUND: "there is none",
    }.get(status)
    return f"the API server answered {status} {reason}{f': {means}' if means else ''}"
