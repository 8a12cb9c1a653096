"""The routes: which receiver is notified of an alert, how alerts are grouped, and when a message is sent.

They are data, from which `configuration.py` makes Alertmanager's own format and `resource.py` an AlertmanagerConfig.
"""

from dataclasses import dataclass, replace

PAGE, TICKET, DIGEST, WATCHDOG, REMEDIATION = "gpu-page", "gpu-ticket", "gpu-digest", "gpu-watchdog", "gpu-remediation"
"""Names of receivers. Each team of TEAMS has one too, `team_receiver`."""

TEAMS = ("research", "serving")
"""The teams of the example; yours are the values of the label `team`, which comes from labels of namespaces."""

MORNING = "gpu-digest-morning"
"""Name of the hour in which digests are sent."""
MORNING_HOUR = ("08:00", "09:00")


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label, such as notify="page" or, with `regex`, area=~"efficiency|capacity"."""

    label: str
    value: str
    regex: bool = False

    def __str__(self) -> str:
        return f'{self.label}{"=~" if self.regex else "="}"{self.value}"'


@dataclass(frozen=True, slots=True)
class Route:
    """A route and those below it. What is empty is that of the route above."""

    matchers: tuple[Matcher, ...]
    receiver: str
    group_by: tuple[str, ...] = ()
    group_wait: str = ""
    """How long the first message of a group waits for further alerts."""
    group_interval: str = ""
    """How long until the next message of a group that has changed."""
    repeat_interval: str = ""
    """How long until a group that has not changed is sent again."""
    active: str = ""
    """Name of the times in which messages are sent; empty for always."""
    continues: bool = False
    """Whether the routes behind this one are looked at too."""
    routes: tuple["Route", ...] = ()


def team_receiver(team: str) -> str:
    """The receiver of a team."""
    return f"gpu-team-{team}"


_WATCHDOG = Route(
    (Matcher("severity", "none"),),
    WATCHDOG,
    group_by=("cluster", "alertname"),
    group_wait="0s",
    group_interval="1m",
    repeat_interval="5m",
)
"""Fires always. Whoever receives it raises an alarm when it stays away: then alerts no longer arrive."""

_REMEDIATION = Route(
    (Matcher("notify", "page"), Matcher("area", "hardware")),
    REMEDIATION,
    group_by=("cluster", "alertname", "node", "UUID"),
    group_wait="0s",
    group_interval="5m",
    repeat_interval="12h",
    continues=True,
)
"""For automation that drains a node whose hardware is broken. Leave it out where there is none."""

_PAGE = Route(
    (Matcher("notify", "page"),),
    PAGE,
    group_by=("cluster", "node"),
    group_wait="30s",
    group_interval="5m",
    repeat_interval="4h",
)
"""All that concerns one node is one page."""

_TEAMS_WORK = tuple(
    Route(
        (Matcher("notify", "ticket"), Matcher("area", "efficiency|capacity", regex=True), Matcher("team", team)),
        team_receiver(team),
        group_by=("cluster", "alertname", "namespace", "workload"),
        group_wait="2m",
        group_interval="1h",
        repeat_interval="24h",
        continues=True,
    )
    for team in TEAMS
)
"""A team hears of its own workloads that are pending, beside the ticket of those who run the cluster."""

_TICKET = Route(
    (Matcher("notify", "ticket"),),
    TICKET,
    group_by=("cluster", "alertname", "node", "namespace", "workload"),
    group_wait="2m",
    group_interval="6h",
    repeat_interval="7d",
)
"""One ticket for each alert of a node or workload. A newcomer elsewhere has a ticket of its own, and one in the same
group is added after hours, so that nobody is called to a ticket again for each of them."""

_DIGEST = Route(
    (Matcher("notify", "digest"),),
    DIGEST,
    group_by=("cluster", "team"),
    group_wait="5m",
    group_interval="1h",
    repeat_interval="20h",
    active=MORNING,
    # The times in which messages are sent are the only setting that a route does not take from the one above it.
    routes=tuple(Route((Matcher("team", team),), team_receiver(team), active=MORNING) for team in TEAMS),
)
"""One message per team and day: groups are looked at once an hour, and sent only within the one hour of MORNING."""

GPU = Route(
    (Matcher("component", "gpu"),),
    TICKET,
    group_by=("cluster", "alertname"),
    group_wait="2m",
    group_interval="6h",
    repeat_interval="7d",
    routes=(_WATCHDOG, _REMEDIATION, _PAGE, *_TEAMS_WORK, _TICKET, _DIGEST),
)
"""The route to put below your own. An alert that no route below it takes becomes a ticket."""


def without_examples(route: Route = GPU) -> Route:
    """The routes without those of the example's teams and of automation, which not everybody has."""
    dropped = {REMEDIATION, *map(team_receiver, TEAMS)}
    inner = tuple(without_examples(each) for each in route.routes if each.receiver not in dropped)
    return replace(route, routes=inner)
