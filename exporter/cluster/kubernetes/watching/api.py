"""Sends requests to the API server and returns the bodies undecoded: pages of a list, lines of a watch, single objects.

Configuration, authentication and transport are those of the `kubernetes` client. The client's typed models are not
used: on 20,000 pods they take twenty times the time and memory of our decoder, and one unexpected null makes the whole
list fail.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

import urllib3
import yaml
from kubernetes import config as kubernetes_config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from exporter import VERSION
from exporter.api_objects.decode import parse_retry_after
from exporter.cluster.config import ClusterConfig
from exporter.cluster.kubernetes.watching.reasons import WatchReason
from exporter.source import SourceError

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 30.0
_MAX_PAGE_BYTES = 512 << 20
_MAX_LINE_BYTES = 16 << 20
_MAX_OBJECT_BYTES = 4 << 20
"""More than the 1.5 MiB that etcd stores of an object by default."""
_CHUNK_BYTES = 1 << 18

_BY_STATUS = {
    410: WatchReason.EXPIRED,
    429: WatchReason.THROTTLED,
    401: WatchReason.UNAUTHORIZED,
    403: WatchReason.FORBIDDEN,
    404: WatchReason.NOT_SERVED,
}
_NO_CONFIGURATION = (
    kubernetes_config.ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,  # the client's loader raises these two on a YAML file of another shape than a kubeconfig
    AttributeError,
)
_SERVER_ERROR = 500
_OK = (200, 201)


class ApiError(SourceError):
    """A request failed. `retry_after` is how many seconds the API server asked to wait before the next one.

    `status` is the HTTP status of its answer, 0 where it gave none.
    """

    def __init__(self, reason: str, message: str, retry_after: float | None = None, status: int = 0) -> None:
        super().__init__(reason, message)
        self.retry_after, self.status = retry_after, status


def api_error(status: int, message: str, retry_after: float | None = None) -> ApiError:
    """Make the error for an HTTP status, or for the code of an ERROR event, which has the same meaning."""
    otherwise = WatchReason.SERVER_ERROR if status >= _SERVER_ERROR else WatchReason.BAD_RESPONSE
    text = f"the API server answered {status}: {message}"
    return ApiError(_BY_STATUS.get(status, otherwise), text, retry_after, status)


class _ApiCall(NamedTuple):
    method: Literal["GET", "POST", "PUT"]
    path: str
    query: dict[str, str]
    seconds: float
    """How long the API server may be silent."""
    headers: dict[str, str]
    body: dict[str, Any] | None = None


class KubernetesApi:
    """Sends requests over one connection. For use by one thread; another one may call `interrupt`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._streaming: urllib3.BaseHTTPResponse | None = None

    def page(self, path: str, query: dict[str, str]) -> bytes:
        """Send a GET and return the whole body. Raises ApiError."""
        with self._answer(_ApiCall("GET", path, query, _READ_SECONDS, {"Accept-Encoding": "gzip"})) as response:
            return _whole(response, _MAX_PAGE_BYTES, f"a page of {path}")

    def send(
        self, method: Literal["GET", "POST", "PUT"], path: str, body: dict[str, Any] | None, seconds: float
    ) -> bytes:
        """Send a request about one object, with this object as JSON or without any, and return the whole answer.

        Connecting and each read may take `seconds`. Raises ApiError.
        """
        headers = {} if body is None else {"Content-Type": "application/json"}
        with self._answer(_ApiCall(method, path, {}, seconds, headers, body)) as response:
            return _whole(response, _MAX_OBJECT_BYTES, path)

    @contextmanager
    def lines(self, path: str, query: dict[str, str], silence: float) -> Iterator[Iterator[bytes]]:
        """Send a GET and yield the lines of its body as they arrive. Raises ApiError.

        When nothing arrives for `silence` seconds, the connection counts as dead.
        """
        with self._answer(_ApiCall("GET", path, query, silence, {})) as response:
            self._streaming = response
            try:
                yield _split(response.stream(_CHUNK_BYTES, decode_content=True))
            finally:
                self._streaming = None

    def interrupt(self) -> None:
        """End the stream that another thread is reading, if any."""
        response = self._streaming
        if response is not None:
            with suppress(ValueError, RuntimeError, OSError):  # it ended by itself in the meantime
                response.shutdown()

    def close(self) -> None:
        """Close the connection."""
        client: Any = self._client
        client.close()
        client.rest_client.close()

    @contextmanager
    def _answer(self, request: _ApiCall) -> Iterator[urllib3.BaseHTTPResponse]:
        try:
            response = self._send(request)
            try:
                _check(response)
                yield response
            finally:
                response.close()
                response.release_conn()
        except kubernetes_config.ConfigException as error:  # the client refreshes credentials while it sends a request
            raise ApiError(WatchReason.NO_CONFIGURATION, f"no usable credentials: {error}") from error
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            message = f"the API server cannot be reached: {_innermost(error)}"
            raise ApiError(WatchReason.UNREACHABLE, message) from error

    def _send(self, request: _ApiCall) -> urllib3.BaseHTTPResponse:
        method, url, all_headers, body, _ = self._client.param_serialize(
            request.method,
            request.path,
            query_params=list(request.query.items()),
            header_params={"Accept": "application/json", **request.headers},
            body=request.body,
            auth_settings=["BearerToken"],
        )
        timeout = min(_CONNECT_SECONDS, request.seconds), request.seconds
        returned = self._client.call_api(method, url, all_headers, body, _request_timeout=timeout)
        response: urllib3.BaseHTTPResponse = returned.response
        return response


def _whole(response: urllib3.BaseHTTPResponse, most: int, what: str) -> bytes:
    """Read the whole body. Raises ApiError when it has more than `most` bytes."""
    body = bytearray()
    while chunk := response.read(_CHUNK_BYTES, decode_content=True):
        body += chunk
        if len(body) > most:
            raise ApiError(WatchReason.BAD_RESPONSE, f"{what} is larger than {most >> 20} MiB")
    return bytes(body)


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines that are not empty. Raises ApiError when one is too long."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, lines)
        if len(rest) > _MAX_LINE_BYTES:
            raise ApiError(WatchReason.BAD_RESPONSE, f"a line of a watch is longer than {_MAX_LINE_BYTES >> 20} MiB")


def _check(response: urllib3.BaseHTTPResponse) -> None:
    if response.status not in _OK:
        raise api_error(response.status, response.reason or "", parse_retry_after(response.headers.get("Retry-After")))


def _innermost(error: Exception) -> str:
    """Format the innermost cause: the texts of the outer ones repeat addresses and connection pool objects."""
    inner: Any = error
    while inner.__cause__ is not None or getattr(inner, "reason", None).__class__.__module__.startswith("urllib3"):
        inner = inner.__cause__ or inner.reason
    return f"{type(inner).__name__}: {str(inner).rsplit('>: ', 1)[-1]}"


def open_api(config: ClusterConfig) -> KubernetesApi:
    """Connect as the configuration specifies. Raises ApiError when no configuration is usable."""
    configuration = Configuration()
    # With retries, urllib3 would sleep for the time of a Retry-After header, and a stop would have to wait for it.
    configuration.retries = False
    try:
        _configure(configuration, config)
        client: Any = ApiClient(configuration)
        client.user_agent = f"gpugauge/{VERSION}"
        return KubernetesApi(client)
    except _NO_CONFIGURATION as error:
        raise ApiError(WatchReason.NO_CONFIGURATION, f"no usable API server configuration: {error}") from error


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
    """Return a random number from 0 to 1, so that many watchers do not send their requests at the same time."""
    return random.SystemRandom().random()
