"""Writes what texts would lose, for people and for programs."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from exporter.commands.compare.reasons import FACTS
from exporter.commands.compare.response import MetricsResponse
from exporter.commands.compare.uses.judging import SwitchUse
from exporter.commands.compare.uses.passages import Passage
from exporter.commands.compare.writing import counted, wrapped
from exporter.commands.terminal import printable

_SHOWN = 3
"""How many places of a use are named; the rest is counted."""


def as_text(texts: Sequence[Passage], new: MetricsResponse, uses: Sequence[SwitchUse]) -> str:
    """A block for each reason: first what would lose data, marked with an exclamation mark."""
    lines = [
        f"{counted(len(texts), 'text names', 'texts name')} DCGM metrics",
        f"NEW {new.origin}: {counted(len(new.series), 'series')}",
    ]
    for loses, found in groupby(uses, key=lambda each: each.loses_data):
        lines += ["", "WOULD LOSE DATA" if loses else "WRITTEN BY NEITHER EXPORTER"]
        for (_, replacement), alike in groupby(found, key=lambda each: (each.reason, each.replacement)):
            lines += _block(list(alike), replacement)
    places = len({place for each in uses if each.loses_data for place in each.places})
    lines += ["", f"{counted(places, 'text', 'texts')} would lose data." if places else "Nothing would lose data."]
    return "\n".join(map(printable, lines)) + "\n"


def _block(uses: Sequence[SwitchUse], replacement: str) -> Iterator[str]:
    for use in uses:
        more = f" and {len(use.places) - _SHOWN} more" if len(use.places) > _SHOWN else ""
        yield f"{'!' if use.loses_data else ' '} {use.kind} {use.what}"
        yield f"      in {'; '.join(use.places[:_SHOWN])}{more}"
    cause, link = FACTS[uses[0].reason]
    yield from wrapped(f"{cause}: {uses[0].reason.meaning}", "    ")
    yield from wrapped(replacement, "    -> ")
    yield f"    see {link}"


def as_json(texts: Sequence[Passage], new: MetricsResponse, uses: Sequence[SwitchUse]) -> str:
    """Write the same for programs."""
    document = {
        "texts": len(texts),
        "new": {"origin": new.origin, "series": len(new.series)},
        "loses_data": any(each.loses_data for each in uses),
        "uses": [_facts(each) for each in uses],
    }
    return json.dumps(document, indent=2) + "\n"


def _facts(use: SwitchUse) -> dict[str, object]:
    cause, link = FACTS[use.reason]
    return {
        "kind": use.kind,
        "what": use.what,
        "loses_data": use.loses_data,
        "reason": use.reason,
        "cause": cause,
        "meaning": use.reason.meaning,
        "replacement": use.replacement,
        "link": link,
        "places": use.places,
    }
