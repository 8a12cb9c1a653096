"""Takes the counters from a ConfigMap, which is asked for in the background again and again.

A failure leaves the last good list in use. Until a list could be used, the counters file is read in its place where one
is named; the ConfigMap comes before it as soon as it can be used.
"""

import logging
import random
import threading
import time
from collections.abc import Callable

from exporter.background import Starter, in_background
from exporter.backoff import FIRST_PAUSE, Backoff
from exporter.node.counters_watch import CountersSource, LoadedCounters, UnusableCountersError, load_content
from exporter.node.service_account.account import ConfigMapName
from exporter.node.service_account.request import ApiServerError

logger = logging.getLogger(__name__)

KEY = "metrics"
"""The key that dcgm-exporter reads."""
PAUSE_SECONDS = 60.0
"""Between two requests: about as long as the kubelet takes to change a mounted ConfigMap."""
START_SECONDS = 10.0
"""How long the start waits for the first answer."""
_NO_ANSWER = ApiServerError(f"the API server has not answered within {START_SECONDS:g} s")


class ConfigMapCounters:
    """The counters of a ConfigMap. For use by one thread; the requests run in others."""

    def __init__(
        self,
        name: ConfigMapName,
        fetch: Callable[[], str],
        fallback: CountersSource | None,
        clock: Callable[[], float] = time.monotonic,
        start: Starter = in_background("config-map"),  # noqa: B008 - it has no state
    ) -> None:
        """`fetch` returns the list as a text or raises ApiServerError; `clock` is in seconds."""
        self._name, self._fetch, self._fallback, self._clock, self._start = name, fetch, fallback, clock, start
        self._backoff = Backoff(FIRST_PAUSE, PAUSE_SECONDS, clock)
        self._answered = threading.Event()
        self._answered.set()
        self._answer: str | ApiServerError = _NO_ANSWER
        self._taken: str | None = None
        """What was read last: the list, or the message of a failure."""
        self._next_at = float("-inf")
        self._usable = False
        """Whether a list of the ConfigMap could be used so far."""
        self._failure = ""

    @property
    def failure(self) -> str:
        """The message of the failure since which no read succeeded; empty when the last one did."""
        return self._failure

    def due(self) -> bool:
        """Whether to read: the answer is another one than the last, or the file in its place is to be read."""
        self._ask()
        fallback = not self._usable and self._fallback is not None and self._fallback.due()
        return self._answered.is_set() and (fallback or str(self._answer) != self._taken)

    def read(self) -> LoadedCounters:
        """Take the newest answer up; the first time, wait for it. Raises UnusableCountersError."""
        self._ask()
        if self._taken is None:
            self._answered.wait(START_SECONDS)
        answer = self._answer
        self._taken = str(answer)
        try:
            loaded = self._loaded(answer)
        except UnusableCountersError as error:
            return self._in_its_place(error)
        self._usable, self._failure = True, ""
        return loaded

    def _loaded(self, answer: str | ApiServerError) -> LoadedCounters:
        if isinstance(answer, ApiServerError):
            problem = f"cannot be read: {answer}"
            raise UnusableCountersError(f"{self._name} {problem}", problem)
        return load_content(answer.encode("utf-8", errors="surrogatepass"), str(self._name))

    def _in_its_place(self, error: UnusableCountersError) -> LoadedCounters:
        first, self._failure = str(error) != self._failure, str(error)
        if self._usable or self._fallback is None:
            raise error
        if first:
            logger.warning("%s; the counters file is used until it can be", error)
        return self._fallback.read()

    def _ask(self) -> None:
        """Begin a request if it is time for one and none runs."""
        if self._answered.is_set() and self._clock() >= self._next_at:
            self._answered.clear()
            # A node's share of the requests of all nodes, which may have been started in the same second.
            self._next_at = self._clock() + PAUSE_SECONDS * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
            self._start(self._request)

    def _request(self) -> None:
        try:
            self._answer = self._fetch()
            self._backoff.reset()
        except ApiServerError as error:
            self._answer = error
            self._next_at = min(self._next_at, self._clock() + self._backoff.failed())
        finally:
            self._answered.set()
