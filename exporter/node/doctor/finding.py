"""Types of the examination: a check as a row, its findings, and the report with one verdict. No I/O, no state."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from exporter.node.doctor.examination import Examination
from exporter.reason import Reason


class FindingStatus(StrEnum):
    """What a finding means for the exporter."""

    OK = "ok"
    NOTE = "note"
    """Something is limited or unusual; the exporter works."""
    FAILED = "failed"
    """Something that this configuration needs is missing."""
    SKIPPED = "skipped"
    """Not examined: this configuration does not need it, or it cannot be seen from here."""


class Finding(NamedTuple):
    """One result of a check. `detail` may contain text that others have chosen: escape it before it is shown."""

    status: FindingStatus
    detail: str
    reason: Reason | None = None


def ok(detail: str) -> Finding:
    return Finding(FindingStatus.OK, detail)


def skipped(detail: str) -> Finding:
    return Finding(FindingStatus.SKIPPED, detail)


def note(detail: str, reason: Reason | None = None) -> Finding:
    return Finding(FindingStatus.NOTE, detail, reason)


def failed(reason: Reason, detail: str) -> Finding:
    return Finding(FindingStatus.FAILED, detail, reason)


def limited(reason: Reason, detail: str, *, works: bool) -> Finding:
    """A note where the exporter works all the same, else a failure."""
    return note(detail, reason) if works else failed(reason, detail)


class Check(NamedTuple):
    """One row of the examination."""

    area: str
    name: str
    run: Callable[[Examination], Iterable[Finding]]


class CheckResult(NamedTuple):
    """One finding and the check that made it."""

    area: str
    check: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The findings, in the order in which one thing depends on another."""

    node: str
    source: str
    results: tuple[CheckResult, ...]
    read: bool
    """Whether a source was read."""

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """What is missing; the first is what the others may follow from."""
        return tuple(each for each in self.results if each.finding.status is FindingStatus.FAILED)

    @property
    def works(self) -> bool:
        return not self.failures

    @property
    def verdict(self) -> str:
        """One line."""
        if self.works and not self.read:
            return "Nothing is missing of what could be examined, but no source was read."
        if self.works:
            return "Nothing is missing: gpugauge node works here with these flags."
        return _fact(self.failures[0])

    @property
    def next_step(self) -> str:
        """What to do about the first broken link; one line."""
        if self.works:
            return "None."
        first, *more = self.failures
        remedy = first.finding.reason.remedy if first.finding.reason is not None else "None."
        if not more:
            return remedy
        others = "another check" if len(more) == 1 else f"{len(more)} other checks"
        return f"{remedy} Then run this again: {others} failed too, which may or may not follow from it."


def _fact(result: CheckResult) -> str:
    """What is wrong, with what was found here: the meaning alone names no file, address or GPU."""
    reason, found = result.finding.reason, f"{result.check}: {result.finding.detail}"
    return found if reason is None else f"{reason.meaning} ({found})"
