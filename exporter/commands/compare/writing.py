"""Writes what a comparison found, for people and for programs."""

import json
import textwrap
from collections.abc import Iterator, Sequence

from exporter.commands.compare.finding import SwitchFinding, SwitchGroup
from exporter.commands.compare.response import MetricsResponse
from exporter.commands.terminal import printable

_WIDTH = 100
_SHOWN = 3
"""How many metrics of a finding are named; the rest is counted."""


def as_text(old: MetricsResponse, new: MetricsResponse, findings: Sequence[SwitchFinding]) -> str:
    """One block for each group; what needs somebody is marked with an exclamation mark."""
    lines = [f"OLD {old.origin}: {len(old.series)} series", f"NEW {new.origin}: {len(new.series)} series"]
    for group in SwitchGroup:
        found = [each for each in findings if each.group == group]
        if found:
            lines += ["", group.value.upper(), *(line for each in found for line in _lines(each))]
    return "\n".join(printable(line) for line in [*lines, "", _verdict(findings)]) + "\n"


def _lines(finding: SwitchFinding) -> Iterator[str]:
    mark = " " if finding.harmless else "!"
    about = f"label {finding.label}: " if finding.label else ""
    yield f"{mark} {about}{counted(finding.series, 'series')} of {_metrics(finding)}"
    if finding.reason is None:
        return
    if finding.example:
        yield f"    example: {finding.example}"
    yield from wrapped(f"{finding.cause}: {finding.reason.meaning}", "    ")
    if not finding.reason.remedy.startswith("None."):
        yield from wrapped(finding.reason.remedy, "    -> ")
    yield f"    see {finding.link}"


def wrapped(text: str, first: str) -> list[str]:
    """Lines of a text; the first begins with `first`, the others are indented as far."""
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number} {singular if number == 1 or not plural else plural}"


def _metrics(finding: SwitchFinding) -> str:
    names = sorted(finding.metrics)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _verdict(findings: Sequence[SwitchFinding]) -> str:
    marked = sum(not each.harmless for each in findings)
    if not marked:
        return "Nothing needs a change: every difference is by design, or from the time of reading."
    return f"{counted(marked, 'finding needs', 'findings need')} a look, marked with !; the others are by design."


def as_json(old: MetricsResponse, new: MetricsResponse, findings: Sequence[SwitchFinding]) -> str:
    """Write the same for programs."""
    document = {
        "old": {"origin": old.origin, "series": len(old.series)},
        "new": {"origin": new.origin, "series": len(new.series)},
        "harmless": all(each.harmless for each in findings),
        "findings": [_facts(each) for each in findings],
    }
    return json.dumps(document, indent=2) + "\n"


def _facts(each: SwitchFinding) -> dict[str, object]:
    return {
        "group": each.group,
        "reason": each.reason,
        "cause": each.cause,
        "label": each.label,
        "series": each.series,
        "metrics": dict(sorted(each.metrics.items())),
        "example": each.example,
        "meaning": each.reason.meaning if each.reason else "",
        "remedy": each.reason.remedy if each.reason else "",
        "link": each.link,
        "harmless": each.harmless,
    }
