"""Checks which nodes a pod may run on, by the scheduler's rules of node selectors, node affinity and taints."""

from collections.abc import Mapping

from exporter.cluster.kubernetes.records import SchedulingConstraints, SelectorRequirement, Toleration

_STATE_TAINTS = ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that repeat a node's state, which is checked separately."""


def selected(constraints: SchedulingConstraints, name: str, labels: Mapping[str, str]) -> bool:
    """Whether node selector and required node affinity allow the node. A term without requirements matches nothing."""
    if any(labels.get(key) != value for key, value in constraints.selector):
        return False
    if constraints.terms is None:
        return True
    return any(term and all(_matches(each, name, labels) for each in term) for term in constraints.terms)


def _matches(requirement: SelectorRequirement, name: str, labels: Mapping[str, str]) -> bool:
    value = name if requirement.field else labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement.operator, value, requirement.values)
        case _:
            return False


def _compares(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    try:
        left, right = int(value or ""), int(values[0] if values else "")
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right


def tolerated(constraints: SchedulingConstraints, taints: tuple[tuple[str, str, str], ...]) -> bool:
    """Whether the pod tolerates every taint that keeps pods away, except those that repeat the node's state."""
    return all(
        effect == "PreferNoSchedule"
        or key in _STATE_TAINTS
        or any(_tolerates(each, key, value, effect) for each in constraints.tolerations)
        for key, value, effect in taints
    )


def _tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator == "Equal" and bool(toleration.key) and toleration.value == value


def keys_of(constraints: SchedulingConstraints) -> set[str]:
    """The label keys by which the pod selects nodes."""
    keys = {key for key, _ in constraints.selector}
    for term in constraints.terms or ():
        keys.update(requirement.key for requirement in term if not requirement.field)
    return keys


def by_name(constraints: SchedulingConstraints) -> bool:
    """Whether the pod selects nodes by their names."""
    return any(requirement.field for term in constraints.terms or () for requirement in term)
