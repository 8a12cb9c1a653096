"""One row of a counters file as it was written, in whichever format: nothing of it is checked."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawRow:
    """The texts of a row and the line on which it begins."""

    line: int
    name: str = ""
    type: str = ""
    help: str = ""
    problem: str = ""
    """Why it has no such texts; empty where it has."""


SHOWN = 80
"""How many characters of a value a message shows."""


def shown(value: str) -> str:
    """The value in quotes on one line, shortened; a byte that is not UTF-8 is written in hexadecimal."""
    short = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
    return re.sub(r"\\udc([89a-f][0-9a-f])", r"\\x\1", repr(short))
