"""Finds out which devices and fields a call was rejected for, by calls about parts, so that only these are lost.

libdcgm has one status for a call about many devices and fields, which names none of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.status_scope import OF_A_FIELD, OF_A_GPU, OF_THE_CONNECTION, OF_THE_ENGINE
from exporter.node.dcgm.targets.targets import WatchTarget


@dataclass(frozen=True, slots=True)
class RejectedTarget:
    """Fields of entities for which a call was rejected, and its answer."""

    target: WatchTarget
    error: StatusError

    @property
    def problem(self) -> tuple[str, str]:
        """The entry for `Readings.problems`."""
        fields, devices = len(self.target.fields), len(self.target.devices)
        if self.target.watch != "profiling":
            return self.error.reason, f"{fields} fields of {devices} devices: {self.error}"
        reason = f"profiling_{self.error.reason.removeprefix('profiling_')}"
        known = DcgmReason.of(reason) if reason in set(DcgmReason) else self.error.reason
        return known, f"{fields} profiling fields of {devices} devices: {self.error}"

    @property
    def downs(self) -> bool:
        """Whether a GPU of which nothing else can be read is down: not where it only lacks the fields."""
        status, profiling = self.error.status, self.target.watch == "profiling"
        return status in OF_A_GPU or (not profiling and status not in OF_A_FIELD)


@dataclass(slots=True)
class Narrowed:
    """The parts of a target for which a call succeeds, and those for which it does not."""

    accepted: list[WatchTarget] = field(default_factory=list)
    rejected: list[RejectedTarget] = field(default_factory=list)

    def add(self, other: "Narrowed") -> None:
        """Add the parts of another target."""
        self.accepted += other.accepted
        self.rejected += other.rejected


Attempt = Callable[[WatchTarget], None]
"""Makes the call about a part. Raises StatusError."""
Halves = Callable[[WatchTarget], Sequence[WatchTarget]]


def narrow(target: WatchTarget, error: StatusError, attempt: Attempt) -> Narrowed:
    """Find the parts of a target for which a call succeeds; `error` is how it failed for all of it.

    First the devices that it fails for, then, of these, the fields. Raises StatusError for a status of OF_THE_ENGINE.
    """
    by_device = _by_halves(target, error, attempt, WatchTarget.device_halves)
    found = Narrowed(by_device.accepted)
    failing: dict[int, list[RejectedTarget]] = {}
    for each in by_device.rejected:
        failing.setdefault(each.error.status, []).append(each)
    for status, alike in failing.items():
        found.add(Narrowed(rejected=alike) if status in OF_A_GPU else _by_fields(target, alike, attempt))
    return found


def of_components_only(target: WatchTarget, error: StatusError) -> Narrowed:
    """Return that a call about components failed for all of them. Raises the error where it is about anything else."""
    if not target.of_components or error.status in OF_THE_CONNECTION:
        raise error
    return Narrowed(rejected=[RejectedTarget(target, error)])


def _by_fields(whole: WatchTarget, failing: list[RejectedTarget], attempt: Attempt) -> Narrowed:
    """Find the fields of devices for which the call fails with the same status."""
    entities = {entity for each in failing for entity in each.target.entities}
    rest = whole.restricted_to(tuple(entity for entity in whole.entities if entity in entities), whole.fields)
    error = failing[0].error
    if error.status == layout.PROFILING_MULTI_PASS and rest.watch == "profiling":
        return _fewer_fields(rest, error, attempt)
    found = _by_halves(rest, error, attempt, WatchTarget.field_halves)
    if not found.accepted:
        return Narrowed(rejected=failing)
    narrowed = Narrowed(found.accepted)
    for each in found.rejected:
        narrowed.add(_by_halves(each.target, each.error, attempt, WatchTarget.device_halves))
    return narrowed


def _fewer_fields(target: WatchTarget, error: StatusError, attempt: Attempt) -> Narrowed:
    """Keep the first fields only: they are in the order of the counters file, the most important ones first."""
    halves = target.field_halves()
    if not halves:
        return Narrowed(rejected=[RejectedTarget(target, error)])
    first, second = halves
    failure = _failure(first, attempt)
    found = Narrowed([first]) if failure is None else _fewer_fields(first, failure, attempt)
    found.rejected.append(RejectedTarget(second, error))
    return found


def _by_halves(target: WatchTarget, error: StatusError, attempt: Attempt, halves: Halves) -> Narrowed:
    """Try halves, and halves of those that fail, until what fails has none."""
    if error.status in OF_THE_ENGINE:
        raise error
    found = Narrowed()
    parts = halves(target)
    for part in parts:
        failure = _failure(part, attempt)
        found.add(Narrowed([part]) if failure is None else _by_halves(part, failure, attempt, halves))
    return found if parts else Narrowed(rejected=[RejectedTarget(target, error)])


def _failure(target: WatchTarget, attempt: Attempt) -> StatusError | None:
    try:
        attempt(target)
    except StatusError as error:
        return error
    return None
