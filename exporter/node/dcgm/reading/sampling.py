"""Watches the fields of an inventory and reads them in each collection. What the engine rejects is tried again later.

In: an inventory. Out of each read: batches (samples by field and device), counts of rejected values, and the GPUs that
turned out to be down.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.entities.inventory import EngineInventory
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.records import DecodedRead
from exporter.node.dcgm.native.status_scope import OF_A_GPU, require_any
from exporter.node.dcgm.native.values import status_reason
from exporter.node.dcgm.reading.reads import BatchRead, batch_reads
from exporter.node.dcgm.reading.rejection import Narrowed, RejectedTarget, narrow, of_components_only
from exporter.node.dcgm.reading.watch import Watches, watch_interval
from exporter.node.dcgm.reading.watcher import Watcher, WatchRetry
from exporter.node.dcgm.reading.xid_history import XidHistory
from exporter.node.dcgm.targets.components import EngineComponents, component_targets
from exporter.node.dcgm.targets.keeping import Identities, Watched, identities_of, kept_watches, not_kept
from exporter.node.dcgm.targets.links import EngineLinks, link_targets
from exporter.node.dcgm.targets.targets import WatchTarget, targets_of
from exporter.node.devices.fields.device_source import ReaderConfig, WantedField
from exporter.node.devices.fields.read_plan import plan
from exporter.node.devices.readings.readings import Batch, RejectionCounts, RejectionReason, XidReport

BASIC_PAUSES, PROFILING_PAUSES = (5.0, 300.0), (30.0, 600.0)
"""Seconds until what was rejected is tried again: the first and the longest pause. A profiler, for example, uses the
counters for minutes."""


@dataclass(slots=True)
class SampledRead:
    """The result of one read of all watched fields."""

    batches: list[Batch] = field(default_factory=list)
    link_batches: list[Batch] = field(default_factory=list)
    component_batches: list[Batch] = field(default_factory=list)
    xids: list[XidReport] = field(default_factory=list)
    counts: RejectionCounts = field(default_factory=Counter)
    suspect: list[WatchTarget] = field(default_factory=list)
    """Of which a value is stale or not watched: see DecodedRead."""

    def batches_of(self, target: WatchTarget) -> list[Batch]:
        """Return the list that the samples of a target belong to."""
        if target.of_components:
            return self.component_batches
        return self.link_batches if target.of_links else self.batches


class Sampling:
    """The watches of one connection and the reads of what they sample."""

    def __init__(
        self, connection: EngineConnection, config: ReaderConfig, wanted: Mapping[int, WantedField], clocks: Clocks
    ) -> None:
        """`wanted` has the fields by id, and may be replaced before `start`."""
        self._connection, self._interval, self.wanted, self._clocks = connection, config.interval, wanted, clocks
        self._watches = Watches(connection, config.interval)
        self._watcher = Watcher(self._watches)
        self._xids = XidHistory(connection, self._watches)
        self._last_xids: list[XidReport] = []
        """Of watches that have ended since the last read."""
        self._targets: list[WatchTarget] = []
        self._watched: list[Watched] = []
        self._identities: Identities = {}
        self._reads: list[BatchRead] = []
        self._rejected: list[RejectedTarget] = []
        """What the engine does not watch now."""
        self._unread: list[RejectedTarget] = []
        """What is watched and cannot be read now."""
        self._retry = WatchRetry(*BASIC_PAUSES, clocks.steady)
        self._profiling_retry = WatchRetry(*PROFILING_PAUSES, clocks.steady)
        self._profiled = True
        """Whether profiling fields have been watched for an interval."""
        self._profiled_from = float("-inf")
        self._profiling_due = float("-inf")
        """By when the engine has sampled profiling fields for a whole interval, on the steady clock."""
        self._profiling_blank = False
        """Whether every value of every profiling field was blank, although all have been watched for an interval."""

    def start(
        self, inventory: EngineInventory, links: EngineLinks, components: EngineComponents, *, anew: bool = False
    ) -> None:
        """Watch every wanted field of all these. Raises SourceError.

        What is watched already stays so, unless everything is to be watched `anew`.
        """
        # A GPU that is lost now cannot be watched again, and an XID may say why.
        self._last_xids += self._xids_of_ending_watches()
        identities = identities_of(inventory, links, components)
        self._targets, self._rejected = self._all_targets(inventory, links, components), []
        kept = kept_watches(self._watched, self._targets, {} if anew else self._identities, identities)
        remaining = {watched.made for watched in kept}
        for watched in self._watched:
            if watched.made not in remaining:
                self._watches.discard(watched.made)
        self._watched, self._identities = kept, identities
        # Profiling fields last: whatever fails there, the others are watched by then.
        self._watch(sorted(not_kept(self._targets, kept), key=_is_profiling))

    def watch_again(self, targets: Sequence[WatchTarget]) -> None:
        """End the watches of these targets and make them anew. All others remain: profiling would be blank at first."""
        again = [watched for watched in self._watched if any(watched.made.overlaps(target) for target in targets)]
        for watched in again:
            self._watches.discard(watched.made)
        self._watched = [watched for watched in self._watched if watched not in again]
        self._watch([watched.read for watched in again])

    def retry(self) -> None:
        """Try again, where it is time, to watch and to read what was rejected; all other watches remain."""
        due = [retry.due for retry in (self._retry, self._profiling_retry)]
        if any(due):
            again = [each.target for each in self._rejected if due[_is_profiling(each.target)]]
            self._rejected = [each for each in self._rejected if not due[_is_profiling(each.target)]]
            self._watch(again)

    def read(self) -> SampledRead:
        """Read every watched field. Raises SourceError."""
        found, made, profiling = SampledRead(xids=self._last_xids), [], []
        self._last_xids = []
        for batch_read in self._reads:
            for part, (batch, decoded) in self._read_parts(batch_read):
                made.append(part)
                found.batches_of(part.target).append(batch)
                found.xids += self._xids.new_reports(part.target, decoded, self._made(part.target))
                found.counts.update(self._counted(part, decoded))
                found.suspect += [part.target] if decoded.suspect else []
                profiling += [decoded] if _is_profiling(part.target) else []
        require_any(made, [each.error for each in self._unread if not each.target.of_components])
        if made != self._reads:
            self._reads = made
            self._plan_retries()
        found.counts.update(self._never_read())
        now = self._clocks.steady()
        self._profiling_blank = self._profiled and now > self._profiling_due and _all_blank(profiling)
        self._profiled = now >= self._profiled_from
        return found

    def down(self) -> frozenset[str]:
        """The UUIDs of GPUs of which nothing at all can be read, for another reason than that they lack the fields."""
        served = {gpu for batch_read in self._reads for gpu in batch_read.target.gpus}
        failures = [each for each in self._failures() if each.downs and not each.target.of_components]
        return frozenset(gpu for each in failures for gpu in each.target.gpus) - served

    def problems(self) -> list[tuple[str, str]]:
        """Return (reason, message)."""
        problems = [*(each.problem for each in self._failures()), *self._xids.problems.values()]
        if self._profiling_blank:
            problems.append((DcgmReason.PROFILING_BLANK, "profiling fields are watched, and every value is blank"))
        if self._watches.unknown:
            numbers = ", ".join(map(str, sorted(self._watches.unknown)))
            problems.append((DcgmReason.UNKNOWN_FIELD, f"the engine does not support these fields: {numbers}"))
        return problems

    def close(self) -> None:
        """Remove every watch and group. Never raises."""
        self._watches.close()

    def _xids_of_ending_watches(self) -> Iterator[XidReport]:
        for batch_read in self._reads:
            if batch_read.target.watch == "event":
                for part, (_, decoded) in self._read_parts(batch_read):
                    yield from self._xids.new_reports(part.target, decoded, self._made(part.target))

    def _made(self, target: WatchTarget) -> WatchTarget:
        """Return the watch, as it was made, that samples a target which is read."""
        return next((each.made for each in self._watched if each.made.contains(target)), target)

    def _all_targets(
        self, inventory: EngineInventory, links: EngineLinks, components: EngineComponents
    ) -> list[WatchTarget]:
        fields = tuple(self.wanted.values())
        targets = targets_of(inventory, plan(inventory.devices, fields), self.wanted)
        targets += link_targets(links, inventory, self.wanted)
        return targets + component_targets(components, self.wanted)

    def _pieces(self, target: WatchTarget) -> Iterator[WatchTarget]:
        return target.split(layout.ENTITIES_PER_CALL[self._connection.library.major])

    def _watch(self, targets: Sequence[WatchTarget]) -> None:
        for target in targets:
            for piece in self._pieces(target):
                narrowed = self._watch_piece(piece)
                self._watched += [Watched(made, made) for made in narrowed.accepted]
                self._rejected += narrowed.rejected
        if profiling := [target.interval or self._interval for target in targets if _is_profiling(target)]:
            # Blank until one interval later (4.6.0, measured), that is, in the first read at least.
            self._profiled = False
            now, every = self._clocks.steady(), watch_interval("profiling", max(profiling))
            self._profiled_from = now + every - self._interval
            # The first collections follow each other sooner than that: no value yet is no problem.
            self._profiling_due = now + every
        if any(not _is_profiling(target) for target in self._targets):
            basic = [each for each in self._rejected if not _is_profiling(each.target)]
            errors = [each.error for each in basic if not each.target.of_components]
            require_any(self._watched, [*errors, *self._watches.unknown.values()])
        self._reads = list(batch_reads([each.read for each in self._watched], self.wanted, self._interval))
        self._unread = []
        self._plan_retries()

    def _watch_piece(self, piece: WatchTarget) -> Narrowed:
        try:
            return self._watcher.watch(piece)
        except StatusError as error:
            self._watches.discard(piece)
            return of_components_only(piece, error)

    def _plan_retries(self) -> None:
        failures = self._failures()
        self._profiling_retry.plan([each for each in failures if _is_profiling(each.target)])
        self._retry.plan([each for each in failures if not _is_profiling(each.target)])

    def _failures(self) -> list[RejectedTarget]:
        return [*self._rejected, *self._unread]

    def _read_parts(self, batch_read: BatchRead) -> list[tuple[BatchRead, tuple[Batch, DecodedRead]]]:
        """Read a target, or the parts of it that can be read."""
        try:
            return [(batch_read, batch_read.read(self._connection, self._clocks.wall))]
        except StatusError as error:
            results: dict[WatchTarget, tuple[BatchRead, tuple[Batch, DecodedRead]]] = {}

            def read_part(target: WatchTarget) -> None:
                part = batch_read.part(target)
                results[target] = part, part.read(self._connection, self._clocks.wall)

            try:
                narrowed = narrow(batch_read.target, error, read_part)
            except StatusError as failure:
                narrowed = of_components_only(batch_read.target, failure)
        self._unread += narrowed.rejected
        return [results[target] for target in narrowed.accepted]

    def _counted(self, part: BatchRead, decoded: DecodedRead) -> RejectionCounts:
        """Return what to count of a read: not that profiling fields have no value yet."""
        if not _is_profiling(part.target) or self._profiled:
            return decoded.rejected
        return Counter({key: n for key, n in decoded.rejected.items() if key[1] is not RejectionReason.BLANK})

    def _never_read(self) -> RejectionCounts:
        """Count the samples that no read has: fields that the engine does not know, watch or read."""
        counts: RejectionCounts = Counter()
        for target in self._targets:
            for number in target.fields:
                if error := self._watches.unknown.get(number):
                    counts[number, _unsupported_reason(error)] += len(target.devices)
        for each in self._failures():
            if each.error.status not in OF_A_GPU:  # such a GPU is reported as down, not once per field
                for number in each.target.fields:
                    reason = status_reason(each.error.status) or RejectionReason.BLANK
                    counts[number, reason] += len(each.target.devices)
        return counts


def _all_blank(reads: Sequence[DecodedRead]) -> bool:
    """Whether nothing but blank values was read; False where nothing was read at all."""
    values = (value for decoded in reads for column in decoded.columns for value in column)
    reasons = {reason for decoded in reads for _, reason in decoded.rejected}
    return reasons == {RejectionReason.BLANK} and all(value is None for value in values)


def _is_profiling(target: WatchTarget) -> bool:
    return target.watch == "profiling"


def _unsupported_reason(error: StatusError) -> RejectionReason:
    """Return why a field that the engine does not know has no value."""
    reason = status_reason(error.status)
    return RejectionReason.NOT_SUPPORTED if reason in (None, RejectionReason.BLANK) else reason
