"""How `gpugauge explain` writes amounts and texts that others wrote."""

import json
from collections.abc import Iterable, Sequence

from exporter.cluster.kubernetes.objects.records import Amounts
from exporter.commands.terminal import printable


def lines(found: Iterable[str]) -> str:
    """Join lines, each without anything that a terminal would act on."""
    return "".join(printable(line) + "\n" for line in found)


def not_seen_text(not_seen: Sequence[str]) -> list[str]:
    """Name what could not be read; nothing where everything could."""
    if not not_seen:
        return []
    return ["", f"Not seen with these credentials: {', '.join(not_seen)}.", "What follows from them is missing above."]


def as_json(found: object) -> str:
    """Write JSON, in which control characters are escaped."""
    return json.dumps(found, indent=2) + "\n"


def amounts(found: Amounts) -> str:
    """Write devices as `2 nvidia.com/gpu`."""
    return ", ".join(f"{count} {name}" for name, count in found)
