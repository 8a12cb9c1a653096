"""Field selectors as far as a watcher uses them: `a.b=c,d.e!=f`, every part of which must hold."""

from typing import Any


def matches(given: dict[str, Any], selector: str) -> bool:
    """Whether the object has these values; a field that is not there is empty."""
    return all(_holds(given, part) for part in selector.split(",") if part)


def _holds(given: dict[str, Any], part: str) -> bool:
    unequal = "!=" in part
    path, _, wanted = part.partition("!=") if unequal else part.replace("==", "=").partition("=")
    found: Any = given
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return (str(found or "") == wanted) != unequal
