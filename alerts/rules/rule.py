"""The types of rules: a group consists of recording rules and alerts, which Prometheus evaluates in order."""

from dataclasses import dataclass
from enum import StrEnum

INTERVAL_SECONDS = 60
"""How often a group is evaluated; an alert that requires a number of samples counts them in these steps."""

QUICK_INTERVAL_SECONDS = 30
"""The same of a group that reads few series and whose alerts have a short `for`."""

RUNBOOK = "https://github.com/gpugauge/gpugauge/blob/main/docs/runbook.md"


class Severity(StrEnum):
    """Label `severity`. An alert name has only one: Alertmanager setups commonly inhibit by name across severities."""

    CRITICAL = "critical"
    WARNING = "warning"


class Area(StrEnum):
    """Label `area`: what an alert is about, and so which team it concerns."""

    HARDWARE = "hardware"
    EFFICIENCY = "efficiency"
    CAPACITY = "capacity"
    REGISTRATION = "registration"
    EXPORTER = "exporter"


class Notify(StrEnum):
    """Label `notify`: how soon a person must be notified."""

    PAGE = "page"
    TICKET = "ticket"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded series. `name` is level:metric:operation; `labels` are added to every sample."""

    name: str
    expr: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that somebody is notified of. Durations are Prometheus durations such as `5m`."""

    name: str
    expr: str
    severity: Severity
    area: Area
    notify: Notify
    summary: str
    description: str
    for_: str
    """`for`: how long the condition must be true before the alert fires."""
    keep_firing_for: str = ""
    """How long the alert fires on after its condition has ended; empty for not at all."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations besides summary, description and runbook_url."""


Rule = Recording | Alert


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated in order at one moment; `name`, without `gpugauge-`, is also the name of its file."""

    name: str
    rules: tuple[Rule, ...]
    interval: int = INTERVAL_SECONDS
    """Seconds between evaluations."""
