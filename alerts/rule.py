"""What a rule is: a recording or an alert, in a group that is evaluated as one."""

from dataclasses import dataclass
from enum import StrEnum

INTERVAL_SECONDS = 30
"""How often every group is evaluated; the coverage that an alert demands is counted in these steps."""

RUNBOOK = "https://github.com/gpugauge/gpugauge/blob/main/docs/runbook.md"


class Severity(StrEnum):
    """One alert name has one severity: Alertmanager set-ups commonly inhibit by name across severities."""

    CRITICAL = "critical"
    WARNING = "warning"


class Area(StrEnum):
    """Whose concern an alert is."""

    HARDWARE = "hardware"
    EFFICIENCY = "efficiency"
    CAPACITY = "capacity"
    REGISTRATION = "registration"
    EXPORTER = "exporter"


class Notify(StrEnum):
    """How soon a person should hear of it."""

    PAGE = "page"
    TICKET = "ticket"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Recording:
    """A series that others read. `labels` are added to every sample; `name` is level:metric:operation."""

    name: str
    expr: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition someone is told about. Durations are Prometheus durations such as `5m`."""

    name: str
    expr: str
    severity: Severity
    area: Area
    notify: Notify
    summary: str
    description: str
    wait: str
    """`for`: how long the condition must hold."""
    keep: str = ""
    """`keep_firing_for`: how long it may be interrupted; empty when not at all."""
    annotations: tuple[tuple[str, str], ...] = ()
    """More annotations than summary, description and runbook_url."""


Rule = Recording | Alert


@dataclass(frozen=True, slots=True)
class Group:
    """Rules evaluated in order at one moment; `name` is also the name of its file."""

    name: str
    rules: tuple[Rule, ...]
