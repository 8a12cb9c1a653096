"""Reads the ResourceClaims through which containers of this node have devices: each by its name, and once.

The API server cannot select claims by node, and a watch of all of them on every node of a large cluster would be more
than it should serve. What is read of a claim does not change while a pod uses it.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote

import msgspec

from exporter.api_objects.device_claims import DRA_GROUP, DRA_VERSIONS
from exporter.background import Starter, in_background
from exporter.backoff import FIRST_PAUSE, Backoff
from exporter.log import OnceLog
from exporter.node.dra.resource_claims import ClaimFacts, ClaimId, WantedClaims, resource_claim
from exporter.node.dra.resource_slices import ClaimableKey
from exporter.node.service_account.account import ServiceAccount
from exporter.node.service_account.reasons import ApiReason
from exporter.node.service_account.session import ApiRequestError, ApiSession

_LOG = logging.getLogger(__name__)
MISSING_SECONDS = 60.0
"""How long a claim that was not found, or that lacks a device, is not asked for again."""
WAIT_SECONDS = 0.5
"""How long a collection waits for claims that it asks for: without that a new pod would be named one later."""
_LONGEST_PAUSE = 60.0
_MAX_BYTES = 4 << 20
_DENIED = frozenset({ApiReason.FORBIDDEN, ApiReason.UNAUTHORIZED, ApiReason.NO_API_SERVER})


class ClaimReader:
    """Knows the claims that are wanted. `view` is for one thread; the requests run in another, one after another."""

    def __init__(
        self,
        account: ServiceAccount,
        clock: Callable[[], float] = time.monotonic,
        start: Starter = in_background("dra-claims"),  # noqa: B008 - it has no state
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`clock` is in seconds; `jitter` returns a random number from 0 to 1, other ones on other nodes."""
        self._session = ApiSession(account)
        self._clock, self._start, self._jitter = clock, start, jitter
        self._lock = threading.Lock()
        self._known: Mapping[ClaimId, ClaimFacts] = {}
        self._again_at: dict[ClaimId, float] = {}
        """When a claim that was asked for in vain is due again."""
        self._backoff = Backoff(FIRST_PAUSE, _LONGEST_PAUSE, clock)
        self._next_at = float("-inf")
        self._problem: tuple[ApiReason, str] | None = None
        self._ended = threading.Event()
        """Whether no request is being made."""
        self._ended.set()
        self._closed = False
        self._version = 0
        """Which version of the API answered last."""
        self._malformed = OnceLog(_LOG)

    @property
    def problem(self) -> tuple[ApiReason, str] | None:
        """(reason, message) while claims cannot be read."""
        with self._lock:
            return self._problem

    def view(self, wanted: WantedClaims) -> Mapping[ClaimId, ClaimFacts] | None:
        """What is known of these claims; those that are not known are asked for, and all others forgotten.

        It is the same object until one of them changes; None while the service account may not read claims. The call
        waits for a moment where it has asked for some.
        """
        with self._lock:
            if self._known.keys() - wanted.keys():
                self._known = {claim: facts for claim, facts in self._known.items() if claim in wanted}
            self._again_at = {claim: at for claim, at in self._again_at.items() if claim in wanted}
            due = self._due(wanted) if self._ended.is_set() else []
        if due:
            self._ended.clear()
            self._start(lambda: self._read(due))
            self._ended.wait(WAIT_SECONDS)
        with self._lock:
            denied = self._problem is not None and self._problem[0] in _DENIED
            return None if denied else self._known

    def close(self) -> None:
        """Make no further request, and end the one that is being made."""
        self._closed = True
        self._session.interrupt()

    def _due(self, wanted: WantedClaims) -> list[tuple[ClaimId, frozenset[ClaimableKey]]]:
        now = self._clock()
        if self._closed or now < self._next_at:
            return []
        none = ClaimFacts()
        return [
            (claim, devices)
            for claim, devices in sorted(wanted.items())
            if devices - self._known.get(claim, none).devices.keys() and self._again_at.get(claim, now) <= now
        ]

    def _read(self, due: Iterable[tuple[ClaimId, frozenset[ClaimableKey]]]) -> None:
        try:
            for claim, devices in due:
                if self._closed:
                    return
                self._note(claim, devices, self._requested(claim))
        except ApiRequestError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - the next requests are to be made all the same
            _LOG.exception("the thread that reads claims met a defect")
            self._failed(ApiRequestError(ApiReason.CRASHED, repr(error)))
        finally:
            self._ended.set()

    def _note(self, claim: ClaimId, devices: frozenset[ClaimableKey], found: ClaimFacts | None) -> None:
        with self._lock:
            if found is not None:
                self._known = {**self._known, claim: found}
            if found is None or devices - found.devices.keys():
                self._again_at[claim] = self._clock() + MISSING_SECONDS
            self._problem = None
            self._backoff.reset()

    def _requested(self, claim: ClaimId) -> ClaimFacts | None:
        """Request a claim in each version of the API until one has it; None where none has. Raises ApiRequestError."""
        namespace, name = (quote(text, safe="") for text in claim)
        for version in sorted(range(len(DRA_VERSIONS)), key=lambda each: each != self._version):
            path = f"/apis/{DRA_GROUP}/{DRA_VERSIONS[version]}/namespaces/{namespace}/resourceclaims/{name}"
            try:
                body = self._session.whole(path, {}, _MAX_BYTES)
            except ApiRequestError as error:
                if error.reason is not ApiReason.NOT_SERVED:
                    raise
                continue
            self._version = version
            return self._decoded(body, claim)
        return None

    def _decoded(self, body: bytes, claim: ClaimId) -> ClaimFacts | None:
        """None where the claim cannot be decoded, which costs this claim alone."""
        try:
            return resource_claim(body)
        except (msgspec.DecodeError, RecursionError) as error:
            self._malformed.warning(f"the claim {'/'.join(claim)} cannot be read: {error!s:.120}")
            return None

    def _failed(self, error: ApiRequestError) -> None:
        if self._closed:
            return
        with self._lock:
            self._problem = error.reason, str(error)
            pause = self._backoff.failed() * (0.5 + self._jitter() / 2)
            self._next_at = self._clock() + error.retry_after + pause
