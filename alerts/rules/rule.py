"""The types of rules: a group consists of recording rules and alerts, which Prometheus evaluates in order."""

from dataclasses import dataclass
from enum import StrEnum

INTERVAL_SECONDS = 60
"""How often a group is evaluated; an alert that requires a number of samples counts them in these steps."""

QUICK_INTERVAL_SECONDS = 30
"""The same of a group that reads few series and whose alerts have a short `for`."""

RUNBOOK = "https://github.com/gpugauge/gpugauge/blob/main/docs/runbook.md"


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses that annotations of alerts start with."""

    runbook: str = RUNBOOK
    grafana: str = ""
    """Without it, a link to a dashboard is a path below the address of Grafana."""


LINKS = Links()


class Severity(StrEnum):
    """Label `severity`. An alert name has only one: Alertmanager setups commonly inhibit by name across severities."""

    CRITICAL = "critical"
    WARNING = "warning"
    NONE = "none"
    """Of the watchdog alone, which fires while all is well."""


class Area(StrEnum):
    """Label `area`: what an alert is about, and so which team it concerns."""

    HARDWARE = "hardware"
    EFFICIENCY = "efficiency"
    CAPACITY = "capacity"
    REGISTRATION = "registration"
    EXPORTER = "exporter"


class Notify(StrEnum):
    """Label `notify`: how soon a person must be notified. A page about a node in planned maintenance is a digest."""

    PAGE = "page"
    TICKET = "ticket"
    DIGEST = "digest"
    WATCHDOG = "watchdog"
    """To a program that notifies somebody when it hears nothing for a while."""


class AlertFamily(StrEnum):
    """Label `family`: one word for what is wrong, so that alerts with one cause can be grouped and inhibited."""

    UTILIZATION = "utilization"
    PENDING = "pending"
    CAPACITY = "capacity"
    REGISTRATION = "registration"
    WORKLOAD = "workload"
    LOST = "lost"
    XID = "xid"
    MEMORY = "memory"
    LINK = "link"
    THERMAL = "thermal"
    POWER = "power"
    CLOCK = "clock"
    NODE = "node"
    EXPORTER = "exporter"
    WATCHER = "watcher"
    RULES = "rules"


class DashboardUid(StrEnum):
    """The uid of the dashboard that an alert links to. `variables` are those that the link sets."""

    FLEET = "gpu-fleet"
    NODE = "gpu-node"
    WORKLOAD = "gpu-workload"
    HEALTH = "gpu-health"
    EXPORTER = "gpu-exporter"
    DEVICE = "gpu-device"
    CAPACITY = "gpu-capacity"
    EFFICIENCY = "gpu-efficiency"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the dashboard that are set to the label of the same name."""
        return ("cluster", *_VARIABLES.get(self, ()))


_VARIABLES = {
    DashboardUid.NODE: ("node",),
    DashboardUid.WORKLOAD: ("namespace", "workload"),
    DashboardUid.DEVICE: ("UUID",),
}


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
    """`for`: how long the condition must be true before the alert fires; empty for not at all."""
    family: AlertFamily
    dashboard: DashboardUid = DashboardUid.FLEET
    keep_firing_for: str = ""
    """How long the alert fires on after its condition has ended; empty for not at all."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations besides summary, description, runbook_url and dashboard_url."""


Rule = Recording | Alert


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated in order at one moment; `name`, without `gpugauge-`, is also the name of its file."""

    name: str
    rules: tuple[Rule, ...]
    interval: int = INTERVAL_SECONDS
    """Seconds between evaluations."""
