"""What a real Alertmanager sends: texts from the templates, one message per group, and nothing that is inhibited."""

import json

import pytest

from alerts.routing.configuration import configuration
from alerts.routing.message_templates import TEMPLATES
from alerts.routing.receivers import RECEIVERS
from alerts.routing.routes import MORNING, TEAMS
from demo.receiver import WebhookReceiver
from tests.alerts.routing.running import MailSink, running
from tests.waiting import until

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

POD = {
    "alertname": "GPUPodLowUtilization",
    "severity": "warning",
    "component": "gpu",
    "area": "efficiency",
    "notify": "digest",
    "namespace": "ml",
    "workload": "train",
}
DOWN = {
    "alertname": "GPUExporterDown",
    "severity": "warning",
    "component": "gpu",
    "area": "exporter",
    "notify": "ticket",
    "node": "node-1",
}
BROKEN = {"alertname": "GPUAny", "severity": "critical", "component": "gpu", "area": "hardware", "notify": "page"}
TEXTS = {
    "summary": "The GPUs of pod ml/train-0 have low utilization.",
    "description": "They were busy 2 % of 15 minutes.",
    "runbook_url": "https://example.com/runbook#gpupodlowutilization",
    "dashboard_url": "https://grafana.example.com/d/gpu-workload",
}


class Sinks:
    """Takes the place of pager, chat, tickets and mail in the example's receivers."""

    def __init__(self, web: WebhookReceiver, mail: MailSink, folder):
        self.web, self.mail, self._folder = web, mail, folder

    def receivers(self):
        """The example's receivers with these addresses, and files with their secrets."""
        return json.loads(json.dumps(RECEIVERS), object_hook=self._replaced)

    def _replaced(self, each):
        if "api_url_file" in each:
            file = self._folder / f"{each['channel'][1:]}-url"
            file.write_text(f"{self.web.url}/{each['channel'][1:]}")
            each["api_url_file"] = str(file)
        if "routing_key_file" in each:
            (self._folder / "pager").write_text("key")
            each |= {"routing_key_file": str(self._folder / "pager"), "url": f"{self.web.url}/pager"}
        if "credentials_file" in each:
            (self._folder / "token").write_text("token")
            each["credentials_file"] = str(self._folder / "token")
        if "url" in each and not each["url"].startswith(self.web.url):
            each["url"] = f"{self.web.url}/{each['url'].rpartition('/')[2]}"
        if "smarthost" in each:
            del each["auth_username"], each["auth_password_file"]
            each |= {"smarthost": self.mail.address, "require_tls": False}
        return each

    def posts(self, path):
        return [post for each, post in self.web.posts() if each == path]


@pytest.fixture
def sinks(tmp_path):
    mail = MailSink()
    with WebhookReceiver() as web:
        yield Sinks(web, mail, tmp_path)
    mail.close()


def started(sinks, folder, *, morning=True):
    """An Alertmanager with the example's configuration whose first messages are sent after a second.

    `morning` is whether it is the hour of digests now.
    """
    document = configuration(tuple(sinks.receivers()))
    template = folder / "gpugauge.tmpl"
    template.write_text(TEMPLATES)
    document["templates"] = [str(template)]
    never = {"months": ["january"], "days_of_month": ["31"], "years": ["2001"]}
    document["time_intervals"] = [{"name": MORNING, "time_intervals": [{} if morning else never]}]
    soon(document["route"])
    return running(document, folder)


def soon(route):
    route["group_wait"] = "1s"
    for each in route.get("routes", ()):
        soon(each)


def test_chat_has_a_title_and_the_alerts_with_what_to_do(sinks, tmp_path):
    labels = {**POD, "team": TEAMS[0], "cluster": "west", "pod": "train-0"}
    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post((labels, TEXTS))
        (message,) = until(lambda: sinks.posts(f"gpu-{TEAMS[0]}"))
    (attachment,) = message["attachments"]
    assert attachment["title"] == f"[warning] west team {TEAMS[0]} ml/train: GPUPodLowUtilization"
    assert attachment["title_link"] == TEXTS["dashboard_url"]
    first, second, third, last = attachment["text"].splitlines()
    assert (first, second) == (f"- {TEXTS['summary']}", f"  {TEXTS['description']}")
    assert third.startswith("  Since 20")
    assert third.endswith(f"UTC. What to do: {TEXTS['runbook_url']} Dashboard: {TEXTS['dashboard_url']}")
    assert last.startswith("A message of this kind comes once a day.")


def test_of_many_alerts_ten_are_shown_and_the_number_is_said(sinks, tmp_path):
    alerts = [({**POD, "pod": f"train-{number}"}, TEXTS) for number in range(14)]
    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post(*alerts)
        (mail,) = until(lambda: sinks.mail.messages)
    assert mail.count("- The GPUs of pod") == 10
    assert "These are the first 10 of 14 alerts: " in mail
    assert "Subject: [warning] ml/train: GPUPodLowUtilization (14)" in mail


def test_a_page_has_texts_where_labels_and_annotations_are_missing(sinks, tmp_path):
    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post((BROKEN, {}))
        (event,) = until(lambda: sinks.posts("pager"))
        until(lambda: sinks.posts("alerts"))
    assert event["payload"]["summary"] == "[critical]: GPUAny"
    assert event["payload"]["custom_details"]["alerts"].startswith("- GPUAny\n  Since 20")
    assert "<no value>" not in json.dumps(event)


def test_a_digest_is_one_message_per_team_and_a_newcomer_does_not_make_another(sinks, tmp_path):
    teams = [{**POD, "team": "infra", "pod": f"train-{number}"} for number in range(3)]
    other = {**POD, "team": "vision", "pod": "other"}
    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post(*((labels, TEXTS) for labels in (*teams, other)))
        until(lambda: len(sinks.mail.messages) == 2)
        alertmanager.post(({**POD, "team": "infra", "pod": "newcomer"}, TEXTS), (BROKEN, {}))
        until(lambda: sinks.posts("pager"))
    assert len(sinks.mail.messages) == 2
    assert sorted(mail.count("- The GPUs of pod") for mail in sinks.mail.messages) == [1, 3]


def test_a_digest_waits_for_its_hour(sinks, tmp_path):
    with started(sinks, tmp_path, morning=False) as alertmanager:
        alertmanager.post(({**POD, "pod": "train-0"}, TEXTS), (BROKEN, {}))
        until(lambda: sinks.posts("pager"))
        alertmanager.post(({**BROKEN, "node": "node-9"}, {}))
        until(lambda: len(sinks.posts("pager")) == 2)
    assert sinks.mail.messages == []


def test_a_ticket_is_not_sent_again_with_a_newcomer_and_one_of_another_node_is_its_own(sinks, tmp_path):
    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post(({**DOWN, "instance": "a"}, {}))
        until(lambda: len(sinks.posts("gpu")) == 1)
        alertmanager.post(({**DOWN, "instance": "b"}, {}), ({**DOWN, "node": "node-2"}, {}))
        until(lambda: len(sinks.posts("gpu")) == 2)
    assert [post["groupLabels"]["node"] for post in sinks.posts("gpu")] == ["node-1", "node-2"]


def test_an_inhibited_alert_is_not_sent_and_those_of_other_nodes_or_without_a_node_are(sinks, tmp_path):
    def low(**labels):
        return {**POD, **labels}, TEXTS

    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post((DOWN, {}))
        alertmanager.post(low(pod="here", node="node-1"), low(pod="there", node="node-2"), low(pod="nowhere"))
        until(lambda: len(sinks.mail.messages) == 1)
        suppressed = [each["labels"]["pod"] for each in alertmanager.api.alerts() if each["status"]["inhibitedBy"]]
    assert suppressed == ["here"]
    assert sinks.mail.messages[0].count("- The GPUs of pod") == 2


def test_the_watchdog_is_sent_at_once_and_alone(sinks, tmp_path):
    watchdog = {"alertname": "GPUAlertingWatchdog", "component": "gpu", "severity": "none"}
    with started(sinks, tmp_path) as alertmanager:
        alertmanager.post((watchdog, {}))
        (post,) = until(lambda: [post for _, post in sinks.web.posts()])
    assert post["receiver"] == "gpu-watchdog"
