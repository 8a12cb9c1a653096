"""Which nodes a pod may run on, as the scheduler's node affinity and taint filters decide it."""

from collections.abc import Mapping

from exporter.cluster.kubernetes.records import Match, Needs, Tolerance

_OWN_STATE = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that repeat a node's condition, which is judged apart."""


def selected(needs: Needs, name: str, labels: Mapping[str, str]) -> bool:
    """Whether node selector and required node affinity allow the node."""
    if any(labels.get(key) != value for key, value in needs.selector):
        return False
    if needs.terms is None:
        return True
    return any(term and all(_holds(match, name, labels) for match in term) for term in needs.terms)


def _holds(match: Match, name: str, labels: Mapping[str, str]) -> bool:
    value = name if match.field else labels.get(match.key)
    match match.operator:
        case "In":
            return value in match.values
        case "NotIn":
            return value not in match.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(match.operator, value, match.values)
        case _:
            return False


def _compares(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    try:
        left, right = int(value or ""), int(values[0] if values else "")
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right


def tolerated(needs: Needs, taints: tuple[tuple[str, str, str], ...]) -> bool:
    """Whether no taint that keeps pods away is left untolerated; those of a node's own state are left out."""
    return all(
        effect == "PreferNoSchedule"
        or key in _OWN_STATE
        or any(_tolerates(each, key, value, effect) for each in needs.tolerations)
        for key, value, effect in taints
    )


def _tolerates(tolerance: Tolerance, key: str, value: str, effect: str) -> bool:
    if tolerance.effect not in ("", effect) or tolerance.key not in ("", key):
        return False
    if tolerance.operator == "Exists":
        return True
    return tolerance.operator == "Equal" and bool(tolerance.key) and tolerance.value == value


def keys_of(needs: Needs) -> set[str]:
    """The label keys that decide for this pod."""
    keys = {key for key, _ in needs.selector}
    for term in needs.terms or ():
        keys.update(match.key for match in term if not match.field)
    return keys


def by_name(needs: Needs) -> bool:
    """Whether the node's name decides for this pod."""
    return any(match.field for term in needs.terms or () for match in term)
