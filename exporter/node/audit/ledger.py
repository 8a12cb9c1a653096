"""Decides which lines an observation adds to the audit log. No I/O; for use by one thread.

An allocation begins with the first answer of the kubelet that has it, and ends with the first one that does not have it
while every device id is understood. No answer, and one that cannot be understood, ends nothing: they are a gap. Time
counts for an allocation between two answers that followed each other and had it, and up to the first one that does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter import VERSION
from exporter.node.audit.chain import Chain
from exporter.node.audit.lines import (
    AllocationEnded,
    AllocationOpen,
    AllocationStarted,
    Checkpoint,
    DeviceId,
    LogBegun,
    ObservationGap,
    device_keys,
    moment,
)
from exporter.node.audit.observation import AllocationKey, AuditObservation, NodeAllocations, SeenAllocation, is_listed
from exporter.node.audit.open_allocation import OpenAllocation, PodDetails, pod_details
from exporter.node.audit.reasons import GapReason

CHECKPOINT_SECONDS = 120.0
"""Time between checkpoints: at most so much of mean and maximum is lost with the process."""
CHECKPOINT_ALLOCATIONS = 64
"""How many allocations one checkpoint has: those that were written longest ago. Bounds the log on shared devices."""


SeenWithDetails = Mapping[AllocationKey, tuple[SeenAllocation, PodDetails]]
"""What an observation has, with what is known of the pods."""


@dataclass(slots=True)
class OpenGap:
    """A gap that lasts; `since` in Unix seconds."""

    since: float
    reason: str
    written_at: float


@dataclass(slots=True)
class LedgerState:
    """What the log says, up to its last line."""

    allocations: dict[AllocationKey, OpenAllocation] = field(default_factory=dict)
    gaps: dict[DeviceId | None, OpenGap] = field(default_factory=dict)
    """The gaps that last: of the whole node under None."""
    observed_at: float | None = None
    """When the allocations of the node were known last; None for never."""


class Ledger:
    """Keeps the open allocations, and makes the lines of what changes."""

    def __init__(
        self,
        chain: Chain,
        longest: float,
        state: LedgerState | None = None,
        annotations: tuple[str, ...] = (),
    ) -> None:
        """`longest` is how many seconds two observations may lie apart without a gap; `state` is what the log says."""
        self.chain = chain
        self._longest, self._annotations = longest, annotations
        self._state = state or LedgerState()
        self._resumed = state is not None
        """Whether nothing was observed yet since another process wrote the log."""
        self._checkpoint_at = float("-inf")

    def begin(self, at: float, reason: str, repaired: int = 0) -> bytes:
        """The lines with which a process or a file begins: open allocations, and gaps of devices, are named again."""
        opened = self._in_order()
        head = self.chain.head(at)
        self.chain.add(LogBegun(**head, reason=reason, version=VERSION, open=len(opened), repaired_bytes=repaired))
        for each in opened:
            self.chain.add(AllocationOpen(**self.chain.head(at), **each.keys(), **each.times(), usage=each.usage()))
        for device, gap in self._state.gaps.items():
            if device is not None:
                self._write_gap(device, gap.reason, at, gap.since, None, again=True)
        return self.chain.sealed()

    def observe(self, observation: AuditObservation) -> bytes:
        """The lines that this observation adds; none where nothing has changed and no checkpoint is due."""
        at, node = round(observation.at, 3), observation.node
        if isinstance(node, GapReason):
            reason = GapReason.NOT_RUNNING if self._resumed else node  # that is how the gap began
            self._resumed = False
            self._gap_lasts(None, reason, at, self._state.observed_at)
            return self.chain.sealed()
        elapsed = self._elapsed(at, lost=observation.lost)
        found = {key: (seen, self._details(seen, observation)) for key, seen in node.seen.items()}
        self._end_what_is_gone(at, node, found, elapsed, pods_known=observation.pods_known)
        for seen, details in found.values():
            self._see(at, seen, details, observation, elapsed)
        self._device_gaps(at, node)
        self._state.observed_at = at
        if at - self._checkpoint_at >= CHECKPOINT_SECONDS or at < self._checkpoint_at:
            self._checkpoint(at, self._longest_unwritten())
        return self.chain.sealed()

    def stop(self) -> bytes:
        """The lines with which a process ends: the sums of every open allocation."""
        at = self._state.observed_at
        if at is None or self._resumed or None in self._state.gaps:
            return b""
        left = self._in_order()
        while len(left) > CHECKPOINT_ALLOCATIONS:
            self._checkpoint(at, left[:CHECKPOINT_ALLOCATIONS])
            left = left[CHECKPOINT_ALLOCATIONS:]
        self._checkpoint(at, left, stopped=True)
        return self.chain.sealed()

    def _in_order(self) -> list[OpenAllocation]:
        return sorted(self._state.allocations.values(), key=lambda each: each.id)

    def _details(self, seen: SeenAllocation, observation: AuditObservation) -> PodDetails:
        pod = observation.pods.get((seen.key.namespace, seen.key.pod))
        return pod_details(seen, pod, self._annotations)

    def _elapsed(self, at: float, *, lost: bool) -> float | None:
        """Seconds since the observation before; None after a gap, which is written here."""
        state, resumed = self._state, self._resumed
        self._resumed = False
        if None in state.gaps:
            self._gap_ends(None, at)
            return None
        before = state.observed_at
        if before is None:
            return None
        elapsed = at - before
        reason = _interruption(elapsed, self._longest, resumed=resumed, lost=lost)
        if reason is None:
            return elapsed
        self._write_gap(None, reason, at, min(before, at), max(before, at))
        return None

    def _end_what_is_gone(
        self, at: float, node: NodeAllocations, found: SeenWithDetails, elapsed: float | None, *, pods_known: bool
    ) -> None:
        for each in self._in_order():
            seen = found.get(each.key)
            if _is_gone(each, node, pods_known=pods_known) if seen is None else not each.is_of(*seen):
                self._end(at, each, elapsed)

    def _end(self, at: float, each: OpenAllocation, elapsed: float | None) -> None:
        if elapsed is not None and each.last_seen == self._state.observed_at:
            each.count(elapsed)
        line = AllocationEnded(
            **self.chain.head(at),
            **each.keys(),
            **each.times(),
            last_seen=moment(each.last_seen),
            duration_seconds=round(max(at - each.started, 0.0), 3),
            **each.sums(),
        )
        self.chain.add(line)
        del self._state.allocations[each.key]

    def _see(
        self,
        at: float,
        seen: SeenAllocation,
        details: PodDetails,
        observation: AuditObservation,
        elapsed: float | None,
    ) -> None:
        """Begin an allocation or go on with it; `elapsed` is since the observation before, None after a gap."""
        known = self._state.allocations.get(seen.key)
        if known is None:
            self._start(at, seen, details, listed=is_listed(observation, seen.key))
            return
        if elapsed is not None and known.last_seen == self._state.observed_at:
            known.count(elapsed)
            known.measure(observation.busy[seen.position], observation.memory[seen.position], elapsed)
        known.refresh(seen, details, listed=is_listed(observation, seen.key))
        known.last_seen = at

    def _start(self, at: float, seen: SeenAllocation, details: PodDetails, *, listed: bool) -> None:
        gap = self._state.gaps.get(seen.key.device)
        not_before = gap.since if gap is not None else self._state.observed_at
        about = (seen.key, seen.model, seen.sharing, seen.replicas, details, not listed)
        started = OpenAllocation(self.chain.next, *about, at, not_before, at, seen.share)
        self._state.allocations[seen.key] = started
        since = None if not_before is None else moment(not_before)
        self.chain.add(AllocationStarted(**self.chain.head(at), **started.keys(), not_before=since))

    def _device_gaps(self, at: float, node: NodeAllocations) -> None:
        """Begin and end the gaps of single devices: of those of the node, and of those that have an allocation."""
        unknown = dict(node.unknown)
        for key in self._state.allocations:
            if key not in node.seen:  # and it has not ended either
                unmatched = not node.lacks(key.device)
                unknown[key.device] = GapReason.UNMATCHED if unmatched else GapReason.METADATA
        for device in [each for each in self._state.gaps if each is not None and each not in unknown]:
            self._gap_ends(device, at)
        for device, reason in unknown.items():
            self._gap_lasts(device, reason, at, self._state.observed_at)

    def _gap_lasts(self, device: DeviceId | None, reason: GapReason, at: float, before: float | None) -> None:
        """Note a gap and write it: when it begins, and that of the node at every checkpoint, in place of one.

        `before` is when all was known last.
        """
        gap = self._state.gaps.get(device)
        if gap is None:
            gap = self._state.gaps[device] = OpenGap(at if before is None else before, reason, float("-inf"))
        due = CHECKPOINT_SECONDS if device is None else float("inf")
        if at - gap.written_at >= due or gap.written_at == float("-inf"):
            gap.written_at = at
            self._write_gap(device, gap.reason, at, gap.since, None)

    def _gap_ends(self, device: DeviceId | None, at: float) -> None:
        gap = self._state.gaps.pop(device)
        self._write_gap(device, gap.reason, at, min(gap.since, at), at)

    def _write_gap(
        self, device: DeviceId | None, reason: str, at: float, since: float, until: float | None, *, again: bool = False
    ) -> None:
        about = {} if device is None else device_keys(device)
        begin, end = moment(since), None if until is None else moment(until)
        head = self.chain.head(at)
        self.chain.add(ObservationGap(**head, reason=str(reason), since=begin, until=end, again=again, **about))

    def _longest_unwritten(self) -> list[OpenAllocation]:
        """The allocations whose sums were written longest ago."""
        return sorted(self._in_order(), key=lambda each: each.checkpoint_at)[:CHECKPOINT_ALLOCATIONS]

    def _checkpoint(self, at: float, allocations: list[OpenAllocation], *, stopped: bool = False) -> None:
        self._checkpoint_at = at
        for each in allocations:
            each.checkpoint_at = at
        usages = tuple(each.usage() for each in allocations)
        self.chain.add(Checkpoint(**self.chain.head(at), allocations=usages, stopped=stopped))


def _is_gone(allocation: OpenAllocation, node: NodeAllocations, *, pods_known: bool) -> bool:
    """Whether an allocation that is not seen has certainly ended."""
    return node.lacks(allocation.key.device) and (pods_known or not allocation.from_metadata)


def _interruption(elapsed: float, longest: float, *, resumed: bool, lost: bool) -> GapReason | None:
    """Why nothing is known of the time between two observations; None where it is known."""
    if lost:
        return GapReason.LOST
    if elapsed < 0:
        return GapReason.CLOCK
    if resumed:
        return GapReason.NOT_RUNNING
    return GapReason.LATE if elapsed > longest else None
