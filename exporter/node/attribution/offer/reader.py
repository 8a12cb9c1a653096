"""Asks the kubelet once a minute which devices it offers to pods, beside its List. A failure costs this alone.

It changes only when a device plugin comes, goes or calls a device unhealthy, and all clients of the socket share one
limit on calls.
"""

import time
from collections.abc import Callable

from exporter.backoff import Backoff
from exporter.gpu_names import ResourcePatterns
from exporter.metric import Family
from exporter.node.attribution.allocation import KEEP_SECONDS
from exporter.node.attribution.offer.offer import UNKNOWN, Offer, OfferCache, OfferedIds
from exporter.node.devices.entities.device import Device
from exporter.reason import Reason
from exporter.snapshot import CollectionCycle, SourceProblem
from exporter.source import SourceError

KUBELET = "kubelet"
"""The name of the source."""
EVERY_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 600.0
"""Between two calls while they fail: older kubelets fail for ever."""


class OfferReader:
    """Reads what is offered. For use by one thread."""

    def __init__(
        self, ask: Callable[[], OfferedIds], problem: Reason, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`ask` makes the call, and raises SourceError, with the reason `unimplemented` for a kubelet that has none.

        `problem` is the reason while calls fail.
        """
        self._ask, self._problem, self._clock = ask, problem, clock
        self._pauses = Backoff(EVERY_SECONDS, LONGEST_PAUSE_SECONDS, clock)
        self._offer = UNKNOWN
        self._read_at = float("-inf")

    def read(self) -> Offer:
        """Return what is offered, as of at most two minutes ago. Asks the kubelet only once a minute."""
        now = self._clock()
        if self._pauses.due and now - self._read_at >= EVERY_SECONDS:
            try:
                self._accept(self._ask(), now)
            except SourceError as error:
                self._failed(error)
        if now - self._read_at > EVERY_SECONDS + KEEP_SECONDS and self._offer.ids is not None:
            self._offer = Offer(problem=self._offer.problem)
        return self._offer

    def _accept(self, ids: OfferedIds, now: float) -> None:
        self._pauses.reset()
        self._offer, self._read_at = Offer(ids, self._offer.ids), now

    def _failed(self, error: SourceError) -> None:
        self._pauses.failed()
        problem = None if error.reason == "unimplemented" else (self._problem, str(error))
        self._offer = Offer(self._offer.ids, self._offer.before, problem)


class OfferInCollections:
    """What collections expose of it. Without a reader nothing is known. For use by one thread."""

    def __init__(self, reader: OfferReader | None, node: str, indexed: ResourcePatterns) -> None:
        self._reader = reader
        self._cache = OfferCache(node, indexed)
        self._offer = UNKNOWN

    def read(self, cycle: CollectionCycle) -> None:
        """Take up what is known; nothing in a collection in which the kubelet could not be read before."""
        up = any(health.up for health in cycle.health if health.source == KUBELET)
        self._offer = self._reader.read() if self._reader is not None and up else UNKNOWN

    def families(self, inventory: tuple[Device, ...], down: tuple[str, ...]) -> tuple[Family, ...]:
        """Which devices are offered; none where nothing is certain."""
        return self._cache.get(inventory, self._offer, down)

    def problems(self) -> tuple[SourceProblem, ...]:
        """Why that is not known, where that can be mended."""
        problem = self._offer.problem
        return (SourceProblem(KUBELET, *problem),) if problem is not None else ()
