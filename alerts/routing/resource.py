"""The same routes and inhibitions as an AlertmanagerConfig, for the Prometheus Operator.

The operator adds the matcher namespace="<namespace of the resource>" to every route and inhibition, so that alerts on
nodes, or on pods of other namespaces, would reach nobody. Set `alertmanagerConfigMatcherStrategy: {type: None}` in the
Alertmanager resource, or take `fragment.yaml` over into its secret.
"""

from typing import Any

from alerts.routing.inhibitions import INHIBITIONS
from alerts.routing.routes import (
    DIGEST,
    MORNING,
    MORNING_HOUR,
    PAGE,
    TICKET,
    WATCHDOG,
    Matcher,
    Route,
    without_examples,
)
from alerts.rules.yaml_text import HEADER, dump

SECRET = "gpugauge-alertmanager"  # noqa: S105 - the name of a Secret
"""Name of the Secret, in the namespace of the resource, that has the addresses and keys."""

_INTRODUCTION = f"""\
#
# The Secret {SECRET} of the same namespace has the keys pager-routing-key, ticket-url, digest-url and watchdog-url.
# The Alertmanager resource needs `alertmanagerConfigMatcherStrategy: {{type: None}}`: without it the operator limits
# every route to alerts with the namespace of this resource, and alerts on nodes reach nobody.
"""


def alertmanager_config() -> str:
    """The text of the committed resource."""
    begin, end = MORNING_HOUR
    document = {
        "apiVersion": "monitoring.coreos.com/v1alpha1",
        "kind": "AlertmanagerConfig",
        "metadata": {
            "name": "gpugauge",
            "labels": {"app.kubernetes.io/name": "gpugauge", "app.kubernetes.io/component": "routing"},
        },
        "spec": {
            "route": _route(without_examples()),
            "inhibitRules": [
                {
                    "sourceMatch": [_matcher(matcher) for matcher in each.matchers(each.sources)],
                    "targetMatch": [_matcher(matcher) for matcher in each.matchers(each.targets)],
                    "equal": list(each.equal),
                }
                for each in INHIBITIONS
            ],
            "muteTimeIntervals": [
                {
                    "name": MORNING,
                    "timeIntervals": [{"weekdays": ["monday:friday"], "times": [{"startTime": begin, "endTime": end}]}],
                }
            ],
            "receivers": _receivers(),
        },
    }
    return HEADER + _INTRODUCTION + dump(document)


def _route(route: Route) -> dict[str, Any]:
    return {
        "matchers": [_matcher(each) for each in route.matchers],
        "receiver": route.receiver,
        **({"groupBy": list(route.group_by)} if route.group_by else {}),
        **({"groupWait": route.group_wait} if route.group_wait else {}),
        **({"groupInterval": route.group_interval} if route.group_interval else {}),
        **({"repeatInterval": route.repeat_interval} if route.repeat_interval else {}),
        **({"activeTimeIntervals": [route.active]} if route.active else {}),
        **({"continue": True} if route.continues else {}),
        **({"routes": [_route(each) for each in route.routes]} if route.routes else {}),
    }


def _matcher(matcher: Matcher) -> dict[str, str]:
    return {"name": matcher.label, "value": matcher.value, "matchType": "=~" if matcher.regex else "="}


def _key(key: str) -> dict[str, str]:
    return {"name": SECRET, "key": key}


def _receivers() -> list[dict[str, Any]]:
    pager = {
        "routingKey": _key("pager-routing-key"),
        "description": '{{ template "gpugauge.title" . }}',
        "details": [{"key": "alerts", "value": '{{ template "gpugauge.text" . }}'}],
    }
    return [
        {"name": PAGE, "pagerdutyConfigs": [pager]},
        {"name": TICKET, "webhookConfigs": [{"urlSecret": _key("ticket-url"), "sendResolved": True}]},
        {"name": DIGEST, "webhookConfigs": [{"urlSecret": _key("digest-url"), "sendResolved": False}]},
        {"name": WATCHDOG, "webhookConfigs": [{"urlSecret": _key("watchdog-url"), "sendResolved": False}]},
    ]
