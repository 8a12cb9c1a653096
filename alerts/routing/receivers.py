"""Example receivers in Alertmanager's format: pager, ticket, chat of each team, mail, webhook, dead man's switch.

Every secret is in a file: none is in the configuration, which others may read.
"""

from typing import Any

from alerts.routing.routes import DIGEST, PAGE, REMEDIATION, TEAMS, TICKET, WATCHDOG, team_receiver

SECRETS = "/etc/alertmanager/secrets/gpugauge"
"""Folder of the files with secrets."""


def webhook(url: str, token: str = "", *, send_resolved: bool = True) -> dict[str, Any]:
    """A webhook; `token` is the name of the file with a bearer token, where it needs one."""
    authorization = {"http_config": {"authorization": {"credentials_file": f"{SECRETS}/{token}"}}} if token else {}
    return {"url": url, "send_resolved": send_resolved, **authorization}


def _chat(team: str) -> dict[str, Any]:
    return {
        "api_url_file": f"{SECRETS}/chat-{team}-url",
        "channel": f"#gpu-{team}",
        "send_resolved": False,
        "title": '{{ template "gpugauge.title" . }}',
        "title_link": '{{ template "gpugauge.link" . }}',
        "text": '{{ template "gpugauge.text" . }}',
    }


RECEIVERS: tuple[dict[str, Any], ...] = (
    {
        "name": PAGE,
        "pagerduty_configs": [
            {
                "routing_key_file": f"{SECRETS}/pager-routing-key",
                "description": '{{ template "gpugauge.title" . }}',
                "details": {"alerts": '{{ template "gpugauge.text" . }}'},
                "client": "gpugauge",
                "client_url": '{{ template "gpugauge.link" . }}',
            }
        ],
    },
    {
        "name": TICKET,
        "webhook_configs": [webhook("https://tickets.example.com/hooks/gpu", "ticket-token")],
    },
    {
        "name": DIGEST,
        "email_configs": [
            {
                "to": "gpu-platform@example.com",
                "from": "alertmanager@example.com",
                "smarthost": "mail.example.com:587",
                "auth_username": "alertmanager",
                "auth_password_file": f"{SECRETS}/mail-password",
                "send_resolved": False,
                "headers": {"Subject": '{{ template "gpugauge.title" . }}'},
                "html": "",
                "text": '{{ template "gpugauge.text" . }}',
            }
        ],
    },
    *({"name": team_receiver(team), "slack_configs": [_chat(team)]} for team in TEAMS),
    {
        "name": REMEDIATION,
        "webhook_configs": [webhook("http://drain-controller.example.svc:8080/alerts", "remediation-token")],
    },
    {
        "name": WATCHDOG,
        # Answered from outside of the cluster: it must raise an alarm also when the whole cluster is away.
        "webhook_configs": [webhook("https://watchdog.example.com/gpu", "watchdog-token", send_resolved=False)],
    },
)
