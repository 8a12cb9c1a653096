"""Decides when the kubelet is called, and which of its answers are accepted, after failures and restarts. No I/O."""

from collections.abc import Callable

from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.kubelet.reason import EMPTY_LIST_SECONDS, START_SECONDS, KubeletReason
from exporter.source import SourceError

SocketIdentity = tuple[int, int]
"""Inode and modification time of a socket file: others when the kubelet has made it again."""


class CallPauses:
    """Keeps reads from calling a kubelet that failed, for a pause that doubles with every failure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._failure: SourceError | None = None
        self._socket: SocketIdentity | None = None

    def check(self, socket: SocketIdentity) -> None:
        """Raise the last failure again while its pause lasts. A new socket is a kubelet that was not called yet."""
        if socket != self._socket:
            self._socket, self._failure = socket, None
        if self._failure is not None and not self._backoff.due:
            wait = self._backoff.remaining
            raise SourceError(self._failure.reason, f"{self._failure}; the next call is in {wait:.0f} s")

    def failed(self, failure: SourceError) -> None:
        self._failure = failure
        self._backoff.failed()

    def succeeded(self) -> None:
        self._failure = None
        self._backoff.reset()


class StartGuard:
    """Rejects answers of a kubelet that has just restarted and does not know all of its pods yet.

    Until its sources of pods are ready, it may list none (seen with Kubernetes 1.37), or only those of some sources:
    without this, devices would look unallocated for one collection.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_pods_at: float | None = None
        self._socket: SocketIdentity | None = None
        self._restarted_at = float("-inf")
        self._accepted: Allocations = ()

    def check(self, socket: SocketIdentity, pods: int, allocations: Allocations) -> None:
        """Raise SourceError when this answer, with so many pods, is not accepted."""
        now = self._clock()
        if socket != self._socket:
            if self._socket is not None:
                self._restarted_at = now
            self._socket = socket
        if pods:
            self._last_pods_at = now
        elif self._last_pods_at is not None and now - self._last_pods_at <= EMPTY_LIST_SECONDS:
            raise SourceError(
                KubeletReason.STARTING, "the kubelet lists no pod at all, as it may for a while after its start"
            )
        if now - self._restarted_at < START_SECONDS:
            self._compare(allocations)
        self._accepted = allocations

    def _compare(self, allocations: Allocations) -> None:
        if lacking := len(set(self._accepted).difference(allocations)):
            raise SourceError(
                KubeletReason.STARTING, f"the kubelet has restarted and lacks {lacking} allocations that it had before"
            )
