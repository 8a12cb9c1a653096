"""`gpugauge doctor`: writes what the examination of a node found, as a screen, as plain text or as JSON."""

import json
from typing import TextIO

from exporter import VERSION
from exporter.commands.doctor.lines import conclusion, legend, rows, title
from exporter.config import Arguments
from exporter.node.config import NodeConfig
from exporter.node.doctor.examine import examine
from exporter.node.doctor.finding import CheckResult, DoctorReport
from exporter.node.doctor.gather import NodeAccess


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
        from exporter.commands.doctor.screen import draw  # noqa: PLC0415 - rich is loaded for a terminal alone

        draw(report, output)
    else:
        output.write(as_text(report))
    return report.works


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
