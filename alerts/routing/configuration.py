"""Alertmanager's own configuration file: a whole example, and the fragment to take over into your own."""

from typing import Any

from alerts.routing.inhibitions import INHIBITIONS
from alerts.routing.receivers import RECEIVERS
from alerts.routing.routes import GPU, MORNING, MORNING_HOUR, Route, without_examples
from alerts.rules.yaml_text import HEADER, dump

TEMPLATES = "/etc/alertmanager/templates/gpugauge.tmpl"

_EXAMPLE = """\
#
# A whole configuration, as an example. Give the receivers your pager, tickets, chat and mail; yours are also the teams.
# Files with secrets are below /etc/alertmanager/secrets/gpugauge. Without automation leave gpu-remediation out.
"""

_QUIET = """\
#
# Routes and inhibitions of the example, and receivers that send nothing: for the compose stack, and to look at.
"""

_FRAGMENT = """\
#
# What to take over into your own configuration: the route goes below your own root route, the inhibitions, times and
# templates beside your own, and the receivers are those that the routes name: define them, or rename them to yours.
"""


def route_of(route: Route) -> dict[str, Any]:
    """A route in Alertmanager's format."""
    times = {
        name: value for name in ("group_wait", "group_interval", "repeat_interval") if (value := getattr(route, name))
    }
    return {
        "matchers": [str(each) for each in route.matchers],
        "receiver": route.receiver,
        **({"group_by": list(route.group_by)} if route.group_by else {}),
        **times,
        **({"active_time_intervals": [route.active]} if route.active else {}),
        **({"continue": True} if route.continues else {}),
        **({"routes": [route_of(each) for each in route.routes]} if route.routes else {}),
    }


def inhibit_rules() -> list[dict[str, Any]]:
    """The inhibitions in Alertmanager's format."""
    return [
        {
            "source_matchers": [str(matcher) for matcher in each.matchers(each.sources)],
            "target_matchers": [str(matcher) for matcher in each.matchers(each.targets)],
            "equal": list(each.equal),
        }
        for each in INHIBITIONS
    ]


def time_intervals() -> list[dict[str, Any]]:
    """The hour of digests, on working days. Add `location` for a time zone; it is UTC without."""
    begin, end = MORNING_HOUR
    times = [{"start_time": begin, "end_time": end}]
    return [{"name": MORNING, "time_intervals": [{"weekdays": ["monday:friday"], "times": times}]}]


def configuration(receivers: tuple[dict[str, Any], ...] = RECEIVERS, route: Route = GPU) -> dict[str, Any]:
    """A whole configuration with these receivers.

    What is not about GPUs goes to the receiver `other`, which is empty.
    """
    return {
        "templates": [TEMPLATES],
        "route": {"receiver": "other", "group_by": ["cluster", "alertname"], "routes": [route_of(route)]},
        "inhibit_rules": inhibit_rules(),
        "time_intervals": time_intervals(),
        "receivers": [{"name": "other"}, *receivers],
    }


def example() -> str:
    """The text of the committed example."""
    return HEADER + _EXAMPLE + dump(configuration())


def quiet() -> str:
    """The text of a configuration that sends nothing: alerts are to be seen in Alertmanager alone."""
    receivers = tuple({"name": each["name"]} for each in RECEIVERS)
    return HEADER + _QUIET + dump(configuration(receivers))


def fragment() -> str:
    """The text of the committed fragment, without what only some have: teams and automation."""
    route = without_examples()
    used = {route.receiver, *(each.receiver for each in route.routes)}
    return (
        HEADER
        + _FRAGMENT
        + dump(
            {
                "templates": [TEMPLATES],
                "route": {"routes": [route_of(route)]},
                "inhibit_rules": inhibit_rules(),
                "time_intervals": time_intervals(),
                "receivers": [each for each in RECEIVERS if each["name"] in used],
            }
        )
    )
