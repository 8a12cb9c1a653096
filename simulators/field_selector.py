"""Evaluates Kubernetes field selectors, such as `a.b=c,d.e!=f`: every requirement must match. No I/O, no state."""

from typing import Any


def matches(given: dict[str, Any], selector: str) -> bool:
    """Whether the object matches the selector. A missing field counts as empty."""
    return all(_matches_one(given, requirement) for requirement in selector.split(",") if requirement)


def _matches_one(given: dict[str, Any], requirement: str) -> bool:
    unequal = "!=" in requirement
    path, _, expected = requirement.partition("!=") if unequal else requirement.replace("==", "=").partition("=")
    found: Any = given
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return (str(found or "") == expected) != unequal
