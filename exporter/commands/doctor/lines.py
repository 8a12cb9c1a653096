"""The lines of the report of `gpugauge doctor`: title, findings with their explanations, verdict and next step."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from exporter import VERSION
from exporter.commands.terminal import printable
from exporter.node.doctor.finding import CheckResult, DoctorReport, FindingStatus
from exporter.reason import Reason


class ScreenRow(NamedTuple):
    """One line of the screen. `status` is empty on a line that explains the finding above it."""

    area: str
    status: str
    check: str
    text: str


def title(report: DoctorReport) -> str:
    return printable(f"gpugauge {VERSION} doctor: node {report.node}, source {report.source}")


def legend() -> str:
    """What the screen is about, and its words."""
    return (
        "What gpugauge node needs here to expose GPU metrics. ok: as needed. note: limited or unusual, and it works. "
        "failed: needed and missing. skipped: not examined."
    )


def rows(report: DoctorReport) -> Iterator[ScreenRow]:
    """The lines of the screen, every text printable. An area is named, and a reason explained, where it is first."""
    explained: set[tuple[type[Reason], str]] = set()
    for area, results in groupby(report.results, key=lambda result: result.area):
        named = area
        for line, reason in _of_area(list(results)):
            yield line._replace(area=named)
            named = ""
            if reason is not None and (type(reason), str(reason)) not in explained:
                explained.add((type(reason), str(reason)))
                yield from _explanation(reason, line.status)


def _of_area(results: list[CheckResult]) -> Iterator[tuple[ScreenRow, Reason | None]]:
    """A line for each finding, and one for all checks that follow each other and were skipped for the same cause."""
    for (status, _), group in groupby(results, key=_alike):
        found = list(group)
        names = list(dict.fromkeys(each.check for each in found))
        if status == FindingStatus.SKIPPED and len(names) > 1:
            text = f"{', '.join(names)}: {found[0].finding.detail}"
            yield ScreenRow("", status, "", printable(text)), None
            continue
        for each in found:
            detail = printable(each.finding.detail)
            yield ScreenRow("", status, each.check, detail), each.finding.reason


def _alike(result: CheckResult) -> tuple[str, str]:
    finding = result.finding
    return str(finding.status), finding.detail if finding.status is FindingStatus.SKIPPED else ""


def _explanation(reason: Reason, status: str) -> Iterator[ScreenRow]:
    """What a reason means, and what to do, where there is something."""
    yield ScreenRow("", "", "", f"{reason.meaning} [{reason}]")
    if status == FindingStatus.FAILED or not reason.remedy.startswith("None"):
        yield ScreenRow("", "", "", f"-> {reason.remedy}")


def conclusion(report: DoctorReport) -> tuple[str, str]:
    """The verdict and the next step, one line each."""
    return printable(f"Verdict: {report.verdict}"), printable(f"Next step: {report.next_step}")
