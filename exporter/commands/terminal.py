"""Text on a terminal: that of others, on some characters of which it acts, and tables."""

from collections.abc import Sequence


def printable(text: str) -> str:
    """Replace what a terminal would act on: whoever may name a pod or write its status may write anything there."""
    return "".join(each if each.isprintable() else " " for each in text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of a table to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
