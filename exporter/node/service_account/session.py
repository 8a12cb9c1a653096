"""GET requests to the API server or the kubelet: a whole answer, or its lines as they arrive, both limited in size."""

import http.client
import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import msgspec

from exporter import VERSION
from exporter.api_objects.decode import parse_retry_after, status_of
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.connection import connect, headers
from exporter.node.service_account.reasons import ApiReason
from exporter.source import SourceError

MAX_LINE_BYTES = 8 << 20
"""The API server accepts no object of more than 3 MiB."""
_CHUNK_BYTES = 1 << 16
_MAX_MESSAGE_BYTES = 4096
_MAX_MESSAGE = 200
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
"""A peer that is gone without a word is noticed after a minute, also by a watch in which nothing happens."""
_BY_STATUS: dict[int, ApiReason] = {
    http.client.UNAUTHORIZED: ApiReason.UNAUTHORIZED,
    http.client.FORBIDDEN: ApiReason.FORBIDDEN,
    http.client.NOT_FOUND: ApiReason.NOT_SERVED,
    http.client.GONE: ApiReason.EXPIRED,
    http.client.TOO_MANY_REQUESTS: ApiReason.THROTTLED,
}


class ApiRequestError(SourceError):
    """A request failed. `reason` is an ApiReason; `retry_after` how many seconds the API server asked to wait."""

    reason: ApiReason

    def __init__(self, reason: ApiReason, message: str, retry_after: float = 0.0) -> None:
        super().__init__(reason, message)
        self.retry_after = retry_after


class TooLargeError(ApiRequestError):
    """An answer has more bytes than are accepted."""


def request_error(status: int, message: str, retry_after: float = 0.0, peer: str = "the API server") -> ApiRequestError:
    """Make the error for an HTTP status, or for the code of an ERROR event, which has the same meaning."""
    otherwise = ApiReason.SERVER_ERROR if status >= http.client.INTERNAL_SERVER_ERROR else ApiReason.BAD_RESPONSE
    text = f"{peer} answered {status}: {message[:_MAX_MESSAGE]}"
    return ApiRequestError(_BY_STATUS.get(status, otherwise), text, retry_after)


class ApiSession:
    """Sends one request at a time, each over its own connection. For one thread; another one may call `interrupt`."""

    def __init__(self, account: ServiceAccount) -> None:
        self._account = account
        self._socket: socket.socket | None = None
        self._interrupted = False

    def whole(self, path: str, query: Mapping[str, str], most: int) -> bytes:
        """Return the whole answer. Raises ApiRequestError, TooLargeError where it has more than `most` bytes."""
        with self._answer(path, query) as response:
            body = response.read(most + 1)
            if len(body) <= most:
                _check_end(response)
                return body
        raise TooLargeError(ApiReason.BAD_RESPONSE, f"an answer has more than {most} bytes: {path}")

    @contextmanager
    def lines(self, path: str, query: Mapping[str, str], silence: float) -> Iterator[Iterator[bytes]]:
        """Yield the lines of the answer as they arrive. Raises ApiRequestError.

        When nothing arrives for `silence` seconds, the connection counts as dead.
        """
        with self._answer(path, query, silence) as response:
            yield _lines(response)

    def interrupt(self) -> None:
        """End the request that another thread is making, and every later one as soon as it is connected."""
        self._interrupted = True
        connected = self._socket
        if connected is not None:
            with suppress(OSError):
                # That of the plain socket: TLS would be ended in the middle of a read of the other thread.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

    @contextmanager
    def _answer(
        self, path: str, query: Mapping[str, str], silence: float | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        sent, connection = self._prepared()
        try:
            self._send(connection, f"{path}?{urllib.parse.urlencode(query)}" if query else path, sent)
            response = connection.getresponse()
            self._check(response)
            if silence is not None and self._socket is not None:
                self._socket.settimeout(silence)
            yield response
        except (OSError, http.client.HTTPException) as error:
            text = f"{self._account.peer} cannot be reached: {str(error) or type(error).__name__}"
            raise ApiRequestError(ApiReason.UNREACHABLE, text) from error
        finally:
            self._socket = None
            connection.close()

    def _prepared(self) -> tuple[dict[str, str], http.client.HTTPConnection]:
        if not self._account.url:
            raise ApiRequestError(ApiReason.NO_API_SERVER, "KUBERNETES_SERVICE_HOST is not set")
        try:
            return headers(self._account), connect(self._account)
        except OSError as error:
            text = f"the service account cannot be read: {error}"
            raise ApiRequestError(ApiReason.NO_API_SERVER, text) from error
        except ValueError:  # its text could be a part of the token
            raise ApiRequestError(ApiReason.NO_API_SERVER, "the service account's token is not usable") from None

    def _send(self, connection: http.client.HTTPConnection, target: str, sent: dict[str, str]) -> None:
        connection.connect()
        self._socket = connection.sock
        if self._interrupted:  # looked at after the socket is known to `interrupt`, which looks the other way round
            raise ApiRequestError(ApiReason.UNREACHABLE, "the request was interrupted")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE:
            self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
        try:
            connection.request("GET", target, headers={**sent, "User-Agent": f"gpugauge/{VERSION}"})
        except ValueError:  # its text is that of the header with the token
            raise ApiRequestError(ApiReason.NO_API_SERVER, "the service account's token is not usable") from None

    def _check(self, response: http.client.HTTPResponse) -> None:
        if response.status != http.client.OK:
            message = status_of(msgspec.Raw(response.read(_MAX_MESSAGE_BYTES))).message or response.reason
            retry_after = parse_retry_after(response.headers.get("Retry-After")) or 0.0
            raise request_error(response.status, message, retry_after, self._account.peer)


def _check_end(response: http.client.HTTPResponse) -> None:
    """Raise IncompleteRead where a body that stated its length was shorter; of chunks, the library notices it."""
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the lines that are not empty, without their ends. Raises TooLargeError when one is too long."""
    rest = bytearray()
    while chunk := response.read1(_CHUNK_BYTES):
        *ended, last = chunk.split(b"\n")
        for part in ended:
            rest += part
            if rest:
                yield bytes(rest)
            rest.clear()
        rest += last
        if len(rest) > MAX_LINE_BYTES:
            raise TooLargeError(ApiReason.BAD_RESPONSE, f"a line of a watch has more than {MAX_LINE_BYTES} bytes")
    _check_end(response)
