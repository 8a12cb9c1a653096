"""Asks Prometheus: one request per query, with a deadline and a limit of size."""

import ssl
import time
from collections.abc import Callable
from urllib.parse import urlencode

import urllib3

from exporter.commands.prometheus.access import PrometheusAccess
from exporter.commands.prometheus.answer import Answer, AnswerError, decoded, error_text
from exporter.commands.terminal import printable
from exporter.config import ConfigError

_CONNECT_SECONDS = 10.0
_PIECE = 1 << 20
_MAX_BYTES = 256 << 20
"""The largest answer: some million series. More is a mistake, or has to be asked for in parts."""
_OK, _NOT_ALLOWED = 200, 405
_BUSY = (429, 502, 503, 504)
"""What a server or a proxy answers that may succeed a moment later."""
_MEANINGS = {
    401: "it does not accept the credentials",
    403: "the credentials do not allow it",
    404: "is the prefix of the API missing, such as /prometheus for Mimir?",
    429: "there are too many requests",
}
_HEADERS = {"accept-encoding": "gzip"}
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_MAX_TEXT = 300


class PrometheusError(ConfigError):
    """A query has no answer. The message names the address and what is wrong, and no secret."""

    def __init__(self, url: str, problem: str, *, transient: bool = False) -> None:
        super().__init__(f"--prometheus: {url} {problem}")
        self.transient = transient
        """Whether the same query may have an answer later."""


class PrometheusClient:
    """One server. For use by one thread."""

    def __init__(
        self, given: PrometheusAccess, max_bytes: int = _MAX_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`max_bytes` is the largest answer; `clock` is in seconds. Raises ConfigError where a CA is unusable."""
        self._access, self._max_bytes, self._clock = given, max_bytes, clock
        context = None
        if given.ca_file is not None:
            try:
                context = ssl.create_default_context(cafile=given.ca_file)
            except OSError as error:  # an ssl.SSLError is one
                raise ConfigError(f"--prometheus-ca-file: {given.ca_file} has no certificates: {error}") from error
        self._pool = urllib3.PoolManager(ssl_context=context)
        self._method = "POST"

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def query(self, expression: str, at: float) -> Answer:
        """The value of each series of an expression at a time, in seconds. Raises PrometheusError."""
        return self._ask("query", {"query": expression, "time": f"{at:.3f}"})

    def query_range(self, expression: str, start: float, end: float, step: float) -> Answer:
        """The values from `start` to `end`, both included, every `step` seconds. Raises PrometheusError."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        return self._ask("query_range", {"query": expression, **times})

    def _ask(self, path: str, fields: dict[str, str]) -> Answer:
        # Prometheus stops to work on it, too, once nobody waits any more.
        fields["timeout"] = f"{self._access.timeout_seconds:g}s"
        status, body = self._answered(f"/api/v1/{path}", fields)
        if status == _NOT_ALLOWED and self._method == "POST":
            self._method = "GET"  # proxies that let people only read do not let POST through
            status, body = self._answered(f"/api/v1/{path}", fields)
        if status != _OK:
            said = printable(error_text(body))[:_MAX_TEXT] or _MEANINGS.get(status, "")
            text = f"answered {status}{': ' if said else ''}{said}"
            raise PrometheusError(self._access.url, text, transient=status in _BUSY)
        try:
            return decoded(body)
        except AnswerError as error:
            problem = f"answered what cannot be read: {printable(str(error))[:_MAX_TEXT]}"
            raise PrometheusError(self._access.url, problem) from error

    def _answered(self, path: str, fields: dict[str, str]) -> tuple[int, bytes]:
        """Status and body of one request. Raises PrometheusError where there is none in time."""
        seconds = self._access.timeout_seconds
        form = urlencode(fields)
        posted = self._method == "POST"
        try:
            response = self._pool.request(
                self._method,
                f"{self._access.url}{path}" if posted else f"{self._access.url}{path}?{form}",
                body=form if posted else None,
                headers={**self._access.headers, **_HEADERS, **(_FORM if posted else {})},
                timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, seconds), read=seconds),
                retries=False,
                redirect=False,  # credentials are for this address alone
                preload_content=False,
            )
            try:
                return response.status, self._body(response, self._clock() + seconds)
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise PrometheusError(self._access.url, _problem(error, seconds), transient=True) from error

    def _body(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        found = bytearray()
        while piece := response.read(_PIECE):
            found += piece
            if len(found) > self._max_bytes:
                problem = f"answered more than {self._max_bytes >> 20} MiB: ask for a shorter time or for less"
                raise PrometheusError(self._access.url, problem)
            if self._clock() > deadline:
                raise PrometheusError(self._access.url, "did not answer in full in time", transient=True)
        return bytes(found)


def _problem(error: Exception, seconds: float) -> str:
    # NewConnectionError is a timeout by its class, although nothing listens there.
    late = isinstance(error, urllib3.exceptions.TimeoutError)
    if late and not isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"did not answer within {seconds:g} s"
    return f"cannot be reached: {printable(str(error))[:_MAX_TEXT]}"
