"""What users say about alerts and classes in annotations and labels, and which of it is in force now.

Values are kept as written and judged at each pass, so that an exception ends on its day without any event.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from exporter.cluster.kubernetes.records import Namespace, Pod, Switches

CLASS = "gpugauge.io/class"
OPTOUT = "gpugauge.io/low-utilization"
THRESHOLD = "gpugauge.io/low-utilization-threshold"
ALERT = "low-utilization"
"""Value of the `alert` label of opt-outs: the alert's name without the GPU, in kebab case."""

_CLASSES = frozenset({"training", "serving", "interactive"})
_SERVING = frozenset({"deployment", "statefulset", "leaderworkerset", "inferenceservice"})
_UNTIL = re.compile(r"until-(\d{4}-\d{2}-\d{2})", re.ASCII)
_PERCENT = re.compile(r"([1-9]\d?|100)pct", re.ASCII)
_AHEAD = timedelta(days=30)
_LONGEST = 63

Pairs = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class OptOut:
    """An exception in force; `until` is its last day, empty when it has none."""

    until: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """A value that says nothing valid, on a pod or (with an empty `pod`) on a namespace."""

    namespace: str
    pod: str
    key: str
    value: str


def pod_switches(annotations: Pairs, labels: Pairs) -> Switches:
    """As written on a pod; the annotation wins over the label."""
    return Switches(
        class_=_text(annotations.get(CLASS) or labels.get(CLASS)),
        optout=_text(annotations.get(OPTOUT)),
        threshold=_text(annotations.get(THRESHOLD)),
    )


def namespace_switches(labels: Pairs) -> Switches:
    return Switches(_text(labels.get(CLASS)), _text(labels.get(OPTOUT)), _text(labels.get(THRESHOLD)))


def _text(value: str | None) -> str:
    """A label may hold 63 characters and no valid value is longer; one more shows that there was more."""
    return (value or "")[: _LONGEST + 1]


def pod_optout(value: str, now: float) -> OptOut | None:
    """The pod's exception, if in force: through the named day (UTC), which is at most 30 days away."""
    day = _until(value)
    if day is None:
        return None
    today = datetime.fromtimestamp(now, UTC).date()
    return OptOut(day.isoformat()) if today <= day <= today + _AHEAD else None


def namespace_optout(value: str, now: float) -> OptOut | None:
    """The namespace's exception, if in force; only a namespace may be excepted for good."""
    if value == "disabled":
        return OptOut("")
    day = _until(value)
    return OptOut(day.isoformat()) if day is not None and day >= datetime.fromtimestamp(now, UTC).date() else None


def threshold(value: str) -> float | None:
    """`10pct` is 0.1; whole numbers from 1 to 100. Nought would be an exception without an end."""
    found = _PERCENT.fullmatch(value) if value else None
    return int(found[1]) / 100 if found else None


def pod_class(pod: Pod, namespace: Switches) -> str:
    """What the pod says, else its namespace, else what its kind of owner is usually for."""
    for value in (pod.switches.class_, namespace.class_):
        if value in _CLASSES:
            return value
    if pod.workload_type in _SERVING:
        return "serving"
    return "interactive" if pod.workload_type == "notebook" else "training"


def malformed(pods: Iterable[Pod], namespaces: Iterable[Namespace], now: float) -> list[Malformed]:
    """Every value that is ignored because it cannot be understood or reaches too far; an expired one is neither."""
    found = []
    for pod in pods:
        for key, value in _bad(pod.switches, now, namespace=False):
            found.append(Malformed(pod.namespace, pod.name, key, value))
    for space in namespaces:
        for key, value in _bad(space.switches, now, namespace=True):
            found.append(Malformed(space.name, "", key, value))
    return found


def _bad(switches: Switches, now: float, *, namespace: bool) -> Iterable[tuple[str, str]]:
    if switches.class_ and switches.class_ not in _CLASSES:
        yield CLASS, switches.class_
    if switches.threshold and threshold(switches.threshold) is None:
        yield THRESHOLD, switches.threshold
    if switches.optout and not _optout_understood(switches.optout, now, namespace=namespace):
        yield OPTOUT, switches.optout


def _optout_understood(value: str, now: float, *, namespace: bool) -> bool:
    if namespace and value == "disabled":
        return True
    day = _until(value)
    return day is not None and (namespace or day <= datetime.fromtimestamp(now, UTC).date() + _AHEAD)


def _until(value: str) -> date | None:
    found = _UNTIL.fullmatch(value) if value else None
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1])
    except ValueError:
        return None
