"""A poller: a thread that asks for the list of all objects of one kind again and again, where no watch is offered."""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from exporter.api_objects.decode import UnreadableAnswerError, separated
from exporter.backoff import FIRST_PAUSE, Backoff
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.counted_decoding import CountedDecoding
from exporter.node.service_account.known_objects import KnownObjects
from exporter.node.service_account.reasons import ApiReason
from exporter.node.service_account.session import ApiRequestError, ApiSession
from exporter.node.service_account.watched_kind import ReflectorView, WatchedKind

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
POLL_SECONDS = 10.0
"""Between two lists."""
MAX_LIST_BYTES = 32 << 20
"""A kubelet of 250 pods has some 5 MB."""
_LONGEST_PAUSE = 60.0
_STOP_SECONDS = 2.0


class Poller(Generic[T]):
    """Keeps objects of one kind current until it is closed. `view` may be called from any thread."""

    def __init__(
        self,
        kind: WatchedKind[T],
        account: ServiceAccount,
        clock: Callable[[], float] = time.monotonic,
        seconds: float = POLL_SECONDS,
    ) -> None:
        """`clock` is in seconds, and so is what is between two lists."""
        self._kind, self._seconds = kind, seconds
        self._session = ApiSession(account)
        self._known: KnownObjects[T] = KnownObjects(kind.most, clock)
        self._decoded = CountedDecoding(kind, self._known)
        self._backoff = Backoff(FIRST_PAUSE, _LONGEST_PAUSE, clock)
        self._crashed = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"poll-{kind.name}"[:15], daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def view(self, keep_seconds: float) -> ReflectorView[T]:
        """What is known now: the objects only if they were confirmed in the last `keep_seconds`."""
        return self._known.view(keep_seconds)

    def close(self) -> None:
        """End the thread; bounded in time, a connection attempt may take longer."""
        self._stopping.set()
        self._session.interrupt()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self._poll() * random.uniform(0.8, 1.0))  # noqa: S311 - no secret

    def _poll(self) -> float:
        """Ask once. Returns how long to wait before the next time, in seconds."""
        try:
            self._list()
        except ApiRequestError as error:
            return self._failed(error.reason, str(error), error.retry_after)
        except UnreadableAnswerError as error:
            return self._failed(ApiReason.BAD_RESPONSE, str(error))
        except Exception as error:  # noqa: BLE001 - the thread must not end
            if not self._crashed:
                _LOG.exception("the thread that reads %s met a defect", self._kind.name)
            self._crashed = True
            return self._failed(ApiReason.CRASHED, repr(error))
        self._backoff.reset()
        return self._seconds

    def _list(self) -> None:
        page = separated(self._session.whole(self._kind.paths[0], self._kind.query, MAX_LIST_BYTES))
        found = dict(self._decoded(text) for text in page.items or ())
        self._known.replace({key: each for key, each in found.items() if each is not None})

    def _failed(self, reason: ApiReason, message: str, retry_after: float = 0.0) -> float:
        if not self._stopping.is_set():
            self._known.failed(reason, f"{self._kind.name} cannot be read: {message}")
        return retry_after + self._backoff.failed()
