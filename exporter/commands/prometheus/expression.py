"""PromQL with places for values: `$name` in a literal expression. No I/O, no state."""

import re
from collections.abc import Iterable

_PLACE = re.compile(r"\$([a-z_]+)")
_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")


def filled(expression: str, **values: str) -> str:
    """Put the values at their places, escaped as PromQL needs it between double quotes. Each place needs a value."""
    escaped = {name: _escaped(value) for name, value in values.items()}
    return _PLACE.sub(lambda place: escaped[place[1]], expression.strip())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exactly(*texts: str) -> str:
    """A regular expression for `=~` that matches these texts and nothing else."""
    return "|".join(_SPECIAL.sub(r"\\\g<0>", text) for text in texts)


def cluster_pattern(name: str) -> str:
    """What `cluster=~"$cluster"` matches: one cluster, or every one where none is named, also one without a name."""
    return exactly(name) if name else ".*"


def clusters_of(rows: Iterable[dict[str, str]]) -> list[str]:
    """The different values of the label `cluster`."""
    return sorted({labels.get("cluster", "") for labels in rows})
