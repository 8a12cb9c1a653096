"""`gpugauge doctor`: writes what the examination of a node found, as a screen, as plain text or as JSON."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple, TextIO

from exporter import VERSION
from exporter.commands.terminal import printable
from exporter.config import Arguments
from exporter.node.config import NodeConfig
from exporter.node.doctor.examine import examine
from exporter.node.doctor.finding import CheckResult, DoctorReport, FindingStatus
from exporter.node.doctor.gather import NodeAccess
from exporter.reason import Reason


class ScreenRow(NamedTuple):
    """One line of the screen. `status` is empty on a line that explains the finding above it."""

    area: str
    status: str
    check: str
    text: str


def run(
    arguments: Arguments,
    config: NodeConfig,
    output: TextIO,
    *,
    on_terminal: bool = False,
    access: NodeAccess = NodeAccess(),  # noqa: B008 - it does not change
) -> bool:
    """Examine the node, write the report, and return whether nothing is missing."""
    report = examine(config, access)
    if arguments.json:
        output.write(as_json(report))
    elif on_terminal:
        from exporter.commands.doctor_screen import draw  # noqa: PLC0415 - rich is loaded for a terminal alone

        draw(report, output)
    else:
        output.write(as_text(report))
    return report.works


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
    """What a reason means, and of a failure what to do."""
    yield ScreenRow("", "", "", f"{reason.meaning} [{reason}]")
    if status == FindingStatus.FAILED:
        yield ScreenRow("", "", "", f"-> {reason.remedy}")


def conclusion(report: DoctorReport) -> tuple[str, str]:
    """The verdict and the next step, one line each."""
    return printable(f"Verdict: {report.verdict}"), printable(f"Next step: {report.next_step}")


def as_text(report: DoctorReport) -> str:
    """Write the report in columns, without colors."""
    lines = list(rows(report))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    table = ["  ".join((*map(str.ljust, line[:3], widths), line.text)).rstrip() for line in lines]
    return "\n".join([title(report), legend(), "", *table, "", *conclusion(report)]) + "\n"


def as_json(report: DoctorReport) -> str:
    """Write the report for programs, with the texts as they are: JSON escapes them."""
    document = {
        "version": VERSION,
        "node": report.node,
        "source": report.source,
        "works": report.works,
        "verdict": report.verdict,
        "next_step": report.next_step,
        "findings": [_finding(each) for each in report.results],
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(result: CheckResult) -> dict[str, str]:
    finding = result.finding
    reason = finding.reason
    return {
        "area": result.area,
        "check": result.check,
        "status": str(finding.status),
        "detail": finding.detail,
        "reason": str(reason) if reason is not None else "",
        "meaning": reason.meaning if reason is not None else "",
        "remedy": reason.remedy if reason is not None else "",
    }
