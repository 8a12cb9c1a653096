"""The example Alertmanager configuration: a receiver for each value of the label `notify`, and inhibitions.

An inhibition suppresses notifications of one alert while another one fires, which explains it.
"""

from typing import Any

from alerts.rules.rule import Notify
from alerts.rules.yaml_text import HEADER, dump

EXAMPLE_RECEIVER = "http://alert-receiver.monitoring.svc:8080"

INTRODUCTION = """\
#
# An example: put the routes below `component="gpu"` under your own tree, give the three receivers your pager,
# your tickets and your mail, and keep the inhibitions.
"""

_ROUTES: tuple[tuple[Notify, dict[str, Any]], ...] = (
    (Notify.PAGE, {"group_by": ["cluster", "node"], "group_wait": "30s", "repeat_interval": "4h"}),
    (
        Notify.TICKET,
        {"group_by": ["cluster", "alertname"], "group_wait": "1m", "group_interval": "5m", "repeat_interval": "24h"},
    ),
    (
        Notify.DIGEST,
        {
            "group_by": ["cluster", "namespace", "workload"],
            "group_wait": "15m",
            "group_interval": "1h",
            "repeat_interval": "24h",
        },
    ),
)
"""Low utilization is never urgent: the digest is sent late and groups the pods of one workload."""

INHIBITIONS: tuple[dict[str, list[str]], ...] = (
    {
        # A node that is down answers no scrape. Alerts of area="hardware" must not be targets: repair needs them.
        "source_matchers": ['alertname=~"KubeNodeNotReady|KubeNodeUnreachable"', 'node=~".+"'],
        "target_matchers": ['alertname="GPUExporterDown"', 'node=~".+"'],
        "equal": ["cluster", "node"],
    },
    {
        # Without the exporter the utilization of the node's pods is unknown.
        "source_matchers": ['alertname="GPUExporterDown"', 'node=~".+"'],
        "target_matchers": ['alertname="GPUPodLowUtilization"', 'node=~".+"'],
        "equal": ["cluster", "node"],
    },
)
"""Sources and targets are named, and labels in `equal` must not be empty: two missing labels count as equal."""


def config(receiver: str) -> dict[str, Any]:
    """Return an Alertmanager configuration: GPU alerts go to `<receiver>/<notify>`, others to `<receiver>/other`."""
    return {
        "route": {
            "receiver": "other",
            "group_by": ["cluster", "alertname"],
            "routes": [
                {
                    "matchers": ['component="gpu"'],
                    "receiver": "gpu-ticket",
                    "routes": [_route(notify, settings) for notify, settings in _ROUTES],
                }
            ],
        },
        "inhibit_rules": [dict(rule) for rule in INHIBITIONS],
        "receivers": [
            _receiver("other", f"{receiver}/other"),
            *(_receiver(f"gpu-{notify}", f"{receiver}/{notify}") for notify in Notify),
        ],
    }


def alertmanager_example() -> str:
    """Return the text of the committed example file."""
    return HEADER + INTRODUCTION + dump(config(EXAMPLE_RECEIVER))


def _route(notify: Notify, settings: dict[str, Any]) -> dict[str, Any]:
    return {"matchers": [f'notify="{notify}"'], "receiver": f"gpu-{notify}", **settings}


def _receiver(name: str, url: str) -> dict[str, Any]:
    return {"name": name, "webhook_configs": [{"url": url, "send_resolved": name != f"gpu-{Notify.DIGEST}"}]}
