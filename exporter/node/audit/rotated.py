"""The names of rotated audit logs: that of the log, and the number of the last line in it."""

import re
from pathlib import Path

_DIGITS = 12


def rotated_name(path: Path, seq: int) -> Path:
    """What the log is called once it is full; `seq` is the number of its last line."""
    return path.with_name(f"{path.name}.{seq:0{_DIGITS}}")


def rotated_files(path: Path) -> list[Path]:
    """The rotated files of a log, oldest first. Raises OSError."""
    form = re.compile(rf"{re.escape(path.name)}\.[0-9]{{{_DIGITS},}}")
    return sorted(each for each in path.parent.iterdir() if form.fullmatch(each.name))
