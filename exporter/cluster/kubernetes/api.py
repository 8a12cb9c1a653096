"""Requests to the API server: configuration, authentication and transport of the `kubernetes` client, raw answers.

The client's typed models are never loaded: on 20,000 pods they take twenty times the time and memory, and one
unexpected null costs the whole list.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import urllib3
import yaml
from kubernetes import config as kubernetes_config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from exporter.cluster.config import ClusterConfig
from exporter.source import SourceError

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 30.0
_LARGEST_PAGE = 512 << 20
_LONGEST_LINE = 16 << 20
_CHUNK = 1 << 18
_LONGEST_PAUSE = 300.0

REASONS = (
    "expired",
    "unreachable",
    "throttled",
    "unauthorized",
    "forbidden",
    "server_error",
    "bad_response",
    "no_configuration",
    "crashed",
)
"""Every reason for which a watch starts anew: those of ApiError, and a defect of our own."""
_BY_STATUS = {410: "expired", 429: "throttled", 401: "unauthorized", 403: "forbidden"}
_NO_CONFIGURATION = (
    kubernetes_config.ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,  # the client's loader trips so over a file of another shape
    AttributeError,
)
_SERVER_ERROR = 500
_OK = 200


class ApiError(SourceError):
    """A request failed. `retry_after` is how many seconds the server asked to be left alone."""

    def __init__(self, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(reason, message)
        self.retry_after = retry_after


def refused(status: int, message: str, retry_after: float | None = None) -> ApiError:
    """What an HTTP status, or the code of an ERROR event, means to a watch."""
    otherwise = "server_error" if status >= _SERVER_ERROR else "bad_response"
    return ApiError(_BY_STATUS.get(status, otherwise), f"the API server answered {status}: {message}", retry_after)


class Api:
    """One connection's worth of requests; used by one thread, interrupted by another."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._streaming: urllib3.BaseHTTPResponse | None = None

    def page(self, path: str, query: dict[str, str]) -> bytes:
        """The whole body of a GET. Raises ApiError."""
        with self._request(path, query, _READ_SECONDS, {"Accept-Encoding": "gzip"}) as response:
            body = bytearray()
            while chunk := response.read(_CHUNK, decode_content=True):
                body += chunk
                if len(body) > _LARGEST_PAGE:
                    raise ApiError("bad_response", f"a page of {path} is larger than {_LARGEST_PAGE >> 20} MiB")
            return bytes(body)

    @contextmanager
    def lines(self, path: str, query: dict[str, str], quiet: float) -> Iterator[Iterator[bytes]]:
        """The lines of a streamed GET as they come, which may be silent for `quiet` seconds. Raises ApiError."""
        with self._request(path, query, quiet, {}) as response:
            self._streaming = response
            try:
                yield _split(response.stream(_CHUNK, decode_content=True))
            finally:
                self._streaming = None

    def interrupt(self) -> None:
        """Ends the stream that another thread is waiting for, if any."""
        response = self._streaming
        if response is not None:
            with suppress(ValueError, RuntimeError, OSError):  # it ended by itself in the meantime
                response.shutdown()

    def close(self) -> None:
        client: Any = self._client
        client.close()
        client.rest_client.close()

    @contextmanager
    def _request(
        self, path: str, query: dict[str, str], read: float, headers: dict[str, str]
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        try:
            response = self._send(path, query, read, headers)
            try:
                _check(response)
                yield response
            finally:
                response.close()
                response.release_conn()
        except kubernetes_config.ConfigException as error:  # credentials are refreshed while a request is made
            raise ApiError("no_configuration", f"no usable credentials: {error}") from error
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise ApiError("unreachable", f"the API server cannot be reached: {_brief(error)}") from error

    def _send(self, path: str, query: dict[str, str], read: float, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        method, url, sent, _, _ = self._client.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json", **headers},
            auth_settings=["BearerToken"],
        )
        answer = self._client.call_api(method, url, sent, _request_timeout=(_CONNECT_SECONDS, read))
        response: urllib3.BaseHTTPResponse = answer.response
        return response


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, lines)
        if len(rest) > _LONGEST_LINE:
            raise ApiError("bad_response", f"a line of a watch is longer than {_LONGEST_LINE >> 20} MiB")


def _check(response: urllib3.BaseHTTPResponse) -> None:
    if response.status != _OK:
        raise refused(response.status, response.reason or "", _retry_after(response.headers.get("Retry-After")))


def _retry_after(text: str | None) -> float | None:
    """The API server always writes seconds; a date, as proxies may send, is left to the usual back-off."""
    return min(float(text), _LONGEST_PAUSE) if text and text.isascii() and text.isdigit() else None


def _brief(error: Exception) -> str:
    """The innermost cause: the outer texts repeat addresses and pool objects."""
    inner: Any = error
    while inner.__cause__ is not None or getattr(inner, "reason", None).__class__.__module__.startswith("urllib3"):
        inner = inner.__cause__ or inner.reason
    return f"{type(inner).__name__}: {str(inner).rsplit('>: ', 1)[-1]}"


def open_api(config: ClusterConfig) -> Api:
    """Connects as the configuration says. Raises ApiError when there is none to be had."""
    configuration = Configuration()
    # urllib3 would otherwise sleep through a Retry-After on its own, deaf to stop().
    configuration.retries = False
    try:
        _configure(configuration, config)
        return Api(ApiClient(configuration))
    except _NO_CONFIGURATION as error:
        raise ApiError("no_configuration", f"no usable API server configuration: {error}") from error


def _configure(configuration: Configuration, config: ClusterConfig) -> None:
    load: Any = kubernetes_config
    if config.api_server is not None:
        configuration.host = config.api_server.rstrip("/")
        configuration.proxy = None
    elif config.kubeconfig is not None or config.context is not None:
        load.load_kube_config(config.kubeconfig, config.context, configuration, persist_config=False)
    else:
        try:
            load.load_incluster_config(configuration)
        except kubernetes_config.ConfigException:
            load.load_kube_config(client_configuration=configuration, persist_config=False)


def jitter() -> float:
    """A number from nought to one, so that many watchers do not come back at the same instant."""
    return random.SystemRandom().random()
