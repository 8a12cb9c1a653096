"""Decides whether this replica leads and whether it may write the lease, from what it has read. No I/O, no clock.

Times are seconds of this machine's monotonic clock. What the lease says of time was written by another machine's clock:
it is compared for equality and never read as a time.
"""

from dataclasses import dataclass, replace

LEASE_SECONDS = 15.0
"""How long a leader may leave its lease unrenewed before another replica takes it."""
RENEW_SECONDS = 5.0
"""How often a leader renews its lease."""
CHECK_SECONDS = 2.0
"""How often another replica reads the lease."""


@dataclass(frozen=True, slots=True)
class LeaseTerm:
    """What a lease says."""

    leader: str
    """The identity of the replica that leads; empty when it was released."""
    renewed: str
    """When it was renewed, as its leader wrote it."""
    transitions: int = 0
    """How often the leader has changed."""


@dataclass(frozen=True, slots=True)
class Election:
    """What one replica knows of the lease. Each method returns the state after something has happened.

    A leader stays one until it reads that another replica leads: while the lease cannot be read or written, nobody else
    can take it either.
    """

    identity: str
    leads: bool = False
    answered: bool = False
    """Whether the lease, or that there is none, was ever read."""
    term: LeaseTerm | None = None
    """What the lease said when it was last read; None when there was none."""
    read_at: float | None = None
    """When the last attempt read the lease; None when it failed."""
    unchanged: float = 0.0
    """How long the lease was seen unchanged, in seconds, without the time in which attempts failed."""

    def after_read(self, term: LeaseTerm | None, now: float) -> "Election":
        """The lease, or None where there is none, was read or written at this time."""
        known_for = 0.0 if self.read_at is None else now - self.read_at
        unchanged = self.unchanged + known_for if self.answered and term == self.term else 0.0
        leader = "" if term is None else term.leader
        leads = leader == self.identity or (self.leads and not leader)
        return replace(self, leads=leads, answered=True, term=term, read_at=now, unchanged=unchanged)

    def after_failure(self) -> "Election":
        """The lease could not be read or written: until the next read, a leader could not have renewed it either."""
        return replace(self, read_at=None)

    def wait(self, *, ready: bool) -> float:
        """How many more seconds the lease must stay unchanged until this replica takes it; 0 when it may be written.

        A replica that is not ready leaves the lease to the others for LEASE_SECONDS more: one that has the objects of
        the cluster is the better leader.
        """
        if self.leads:
            return 0.0
        if self.read_at is None:
            return LEASE_SECONDS
        taken = self.term is not None and bool(self.term.leader)
        patience = (LEASE_SECONDS if taken else 0.0) + (0.0 if ready else LEASE_SECONDS)
        return max(patience - self.unchanged, 0.0)
