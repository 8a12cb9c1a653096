"""Rebuilds from the lines of an audit log what a ledger needs to go on with it. No I/O."""

from exporter.node.audit.chain import digest
from exporter.node.audit.ledger import LedgerState, OpenGap
from exporter.node.audit.lines import (
    AllocationEnded,
    AllocationLine,
    AllocationOpen,
    AllocationStarted,
    AllocationUsage,
    AnyLine,
    Checkpoint,
    ObservationGap,
    decode,
    observes,
)
from exporter.node.audit.observation import AllocationKey
from exporter.node.audit.open_allocation import OpenAllocation, PodDetails, RunningMeasure


class Replay:
    """Takes the lines of a log in their order."""

    def __init__(self) -> None:
        self.chain = ""
        """The chain of the last line; empty while there was no line."""
        self.seq, self.prev = 0, ""
        """Number and hash of the last line."""
        self.undecoded = 0
        """How many lines are none of an audit log."""
        self._state = LedgerState()
        self._by_id: dict[int, OpenAllocation] = {}

    def take(self, content: bytes) -> None:
        """Take the next line, without its line break."""
        line = decode(content)
        if line is None:
            self.undecoded += 1
            return
        if line.chain != self.chain:
            self.chain, self._state, self._by_id = line.chain, LedgerState(), {}
        self.seq, self.prev = line.seq, digest(content)
        if observes(line):
            self._state.observed_at = line.at
        self._apply(line)

    def state(self) -> LedgerState | None:
        """What the log says; None where there was no line."""
        if not self.chain:
            return None
        state = self._state
        state.allocations = {each.key: each for each in self._by_id.values()}
        for each in self._by_id.values():
            gap = state.gaps.get(each.key.device)
            each.last_seen = gap.since if gap is not None else (state.observed_at or each.started)
        return state

    def _apply(self, line: AnyLine) -> None:
        match line:
            case AllocationStarted():
                self._open(line, line.at, None if line.not_before is None else line.not_before.timestamp())
            case AllocationOpen():
                not_before = None if line.not_before is None else line.not_before.timestamp()
                self._open(line, line.started.timestamp(), not_before)
                self._use(line.usage)
            case AllocationEnded():
                self._by_id.pop(line.allocation, None)
            case Checkpoint():
                for usage in line.allocations:
                    self._use(usage)
            case ObservationGap():
                self._gap(line)

    def _open(self, line: AllocationLine, started: float, not_before: float | None) -> None:
        key = AllocationKey(line.device, line.namespace, line.pod, line.container, line.resource)
        details = PodDetails(line.pod_uid, line.workload, line.workload_type, line.requested_by)
        about = (key, line.model, line.sharing, line.replicas, details, line.from_metadata)
        self._by_id[line.allocation] = OpenAllocation(line.allocation, *about, started, not_before, last_seen=started)

    def _use(self, usage: AllocationUsage) -> None:
        found = self._by_id.get(usage.allocation)
        if found is not None:
            found.observed, found.gpu_seconds = usage.observed_seconds, usage.gpu_seconds
            found.utilization = RunningMeasure.resumed(usage.utilization)
            found.memory = RunningMeasure.resumed(usage.memory_bytes)

    def _gap(self, line: ObservationGap) -> None:
        if line.until is not None:
            self._state.gaps.pop(line.device, None)
        else:
            self._state.gaps[line.device] = OpenGap(line.since.timestamp(), line.reason, line.at)
