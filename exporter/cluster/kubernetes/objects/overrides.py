"""Overrides: workload class, exemption and threshold that users set as annotations or labels of gpugauge.

Read from pods and namespaces as written; each collection evaluates them again, so that an exemption ends on its day
although no object changes then.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from exporter.cluster.kubernetes.objects.records import Namespace, Node, Overrides, Pod

WORKLOAD_CLASS = "gpugauge.io/workload-class"
EXEMPTION = "gpugauge.io/low-utilization"
THRESHOLD = "gpugauge.io/low-utilization-threshold"
MAINTENANCE = "gpugauge.io/maintenance"
ALERT = "low-utilization"
"""Value of the label `alert` of exemptions: the alert's name without "GPU", in kebab case."""

_WORKLOAD_CLASSES = frozenset({"training", "serving", "interactive"})
_SERVING = frozenset({"deployment", "statefulset", "leaderworkerset", "inferenceservice", "rayservice"})
_UNTIL = re.compile(r"until-(\d{4}-\d{2}-\d{2})", re.ASCII)
_PERCENT = re.compile(r"([1-9]\d?|100)pct", re.ASCII)
_LONGEST_POD_EXEMPTION = timedelta(days=30)
_LONGEST_MAINTENANCE = timedelta(days=14)
_MAX_LENGTH = 63
"""Characters of the longest label value that Kubernetes allows; no valid value is longer."""

TextMap = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Exemption:
    """An exemption in force."""

    until: str
    """Its last day, as YYYY-MM-DD in UTC; empty when it has no end."""


@dataclass(frozen=True, slots=True)
class MalformedOverride:
    """A value that is ignored because it is not valid."""

    where: str
    """The object that has it: `pod team-a/train-0`, `namespace team-a` or `node n1`."""
    key: str
    value: str


def pod_overrides(annotations: TextMap, labels: TextMap) -> Overrides:
    """Read a pod's overrides as written. For the workload class, an annotation takes precedence over a label."""
    return Overrides(
        workload_class=_text(annotations.get(WORKLOAD_CLASS) or labels.get(WORKLOAD_CLASS)),
        exemption=_text(annotations.get(EXEMPTION)),
        threshold=_text(annotations.get(THRESHOLD)),
    )


def namespace_overrides(labels: TextMap) -> Overrides:
    """Read a namespace's overrides as written."""
    return Overrides(_text(labels.get(WORKLOAD_CLASS)), _text(labels.get(EXEMPTION)), _text(labels.get(THRESHOLD)))


def _text(value: str | None) -> str:
    """Cut the value to one character more than any valid value has: a longer one stays malformed."""
    return (value or "")[: _MAX_LENGTH + 1]


def node_maintenance(annotations: TextMap) -> str:
    """Read a node's planned maintenance as written."""
    return _text(annotations.get(MAINTENANCE))


def in_maintenance(value: str, now: float) -> bool:
    """Whether maintenance is planned at `now` (seconds since the epoch): through the named day, UTC.

    The day may be at most 14 days ahead: what is announced for longer would hide faults.
    """
    day = _last_day(value)
    today = datetime.fromtimestamp(now, UTC).date()
    return day is not None and today <= day <= today + _LONGEST_MAINTENANCE


def pod_exemption(value: str, now: float) -> Exemption | None:
    """Return the pod's exemption if it is in force at `now` (seconds since the epoch).

    It ends with the named day (UTC), which may be at most 30 days ahead.
    """
    day = _last_day(value)
    if day is None:
        return None
    today = datetime.fromtimestamp(now, UTC).date()
    return Exemption(day.isoformat()) if today <= day <= today + _LONGEST_POD_EXEMPTION else None


def namespace_exemption(value: str, now: float) -> Exemption | None:
    """Return the namespace's exemption if it is in force at `now` (seconds since the epoch).

    Only a namespace can be exempt without end, and until any day ahead.
    """
    if value == "disabled":
        return Exemption("")
    day = _last_day(value)
    return Exemption(day.isoformat()) if day is not None and day >= datetime.fromtimestamp(now, UTC).date() else None


def threshold(value: str) -> float | None:
    """Parse a threshold: `10pct` is 0.1. None unless it is a whole percentage from 1 to 100.

    0 is not allowed: it would be an exemption without end.
    """
    found = _PERCENT.fullmatch(value) if value else None
    return int(found[1]) / 100 if found else None


def workload_class(pod: Pod, namespace: Overrides) -> str:
    """Return the workload class that the pod sets, else its namespace, else the usual one for its workload type."""
    for value in (pod.overrides.workload_class, namespace.workload_class):
        if value in _WORKLOAD_CLASSES:
            return value
    if pod.workload_type in _SERVING:
        return "serving"
    return "interactive" if pod.workload_type == "notebook" else "training"


def malformed(
    pods: Iterable[Pod], namespaces: Iterable[Namespace], nodes: Iterable[Node], now: float
) -> list[MalformedOverride]:
    """Find every value that is ignored because it is not valid or reaches too far ahead. An expired one is valid.

    `now` is in seconds since the epoch.
    """
    found = []
    for pod in pods:
        for key, value in _malformed_values(pod.overrides, now, of_namespace=False):
            found.append(MalformedOverride(f"pod {pod.namespace}/{pod.name}", key, value))
    for namespace in namespaces:
        for key, value in _malformed_values(namespace.overrides, now, of_namespace=True):
            found.append(MalformedOverride(f"namespace {namespace.name}", key, value))
    found += [
        MalformedOverride(f"node {node.name}", MAINTENANCE, node.maintenance)
        for node in nodes
        if node.maintenance and not _within(node.maintenance, now, _LONGEST_MAINTENANCE)
    ]
    return found


def _malformed_values(overrides: Overrides, now: float, *, of_namespace: bool) -> Iterable[tuple[str, str]]:
    if overrides.workload_class and overrides.workload_class not in _WORKLOAD_CLASSES:
        yield WORKLOAD_CLASS, overrides.workload_class
    if overrides.threshold and threshold(overrides.threshold) is None:
        yield THRESHOLD, overrides.threshold
    if overrides.exemption and not _is_exemption(overrides.exemption, now, of_namespace=of_namespace):
        yield EXEMPTION, overrides.exemption


def _is_exemption(value: str, now: float, *, of_namespace: bool) -> bool:
    if of_namespace:
        return value == "disabled" or _last_day(value) is not None
    return _within(value, now, _LONGEST_POD_EXEMPTION)


def _within(value: str, now: float, longest: timedelta) -> bool:
    """Whether the value names a day, which is past or at most so far ahead."""
    day = _last_day(value)
    return day is not None and day <= datetime.fromtimestamp(now, UTC).date() + longest


def _last_day(value: str) -> date | None:
    found = _UNTIL.fullmatch(value) if value else None
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1])
    except ValueError:
        return None
