"""The routes: amtool accepts them, and every alert of every team reaches those who can act, and nobody else."""

import subprocess

import pytest
import yaml

from alerts import GROUPS
from alerts.routing.configuration import configuration, fragment, time_intervals
from alerts.routing.routes import GPU, MORNING, TEAMS, Route
from alerts.rules.rule import Alert
from alerts.rules.rulefile import labels_of
from demo.prometheus import alertmanager_configuration
from tests.alerts.promtool import tool

pytestmark = pytest.mark.prometheus

ALERTS = [rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)]


def _amtool(*arguments):
    return subprocess.run([tool("amtool"), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("routes") / "alertmanager.yaml"
    path.write_text(yaml.safe_dump(configuration()))
    return path


def routed(file, labels):
    """The receivers of an alert with these labels, in the order of the routes."""
    given = [f"{key}={value}" for key, value in labels.items()]
    done = _amtool("config", "routes", "test", f"--config.file={file}", *given)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split(",")


def expected(labels):
    """The receivers that the documentation promises."""
    team = [f"gpu-team-{labels['team']}"] if labels.get("team") in TEAMS else []
    if labels.get("severity") == "none":
        return ["gpu-watchdog"]
    match labels["notify"]:
        case "page":
            return [*(["gpu-remediation"] if labels["area"] == "hardware" else []), "gpu-page"]
        case "ticket":
            return [*(team if labels["area"] in {"efficiency", "capacity"} else []), "gpu-ticket"]
        case "digest":
            return team or ["gpu-digest"]


@pytest.mark.parametrize("configured", ["example", "fragment", "demo"])
def test_amtool_accepts_what_is_generated(tmp_path, configured):
    path = tmp_path / "alertmanager.yaml"
    document = {
        "example": lambda: yaml.safe_dump(configuration()),
        "fragment": lambda: yaml.safe_dump(taken_over(yaml.safe_load(fragment()))),
        "demo": lambda: alertmanager_configuration("http://127.0.0.1:5001"),
    }[configured]()
    path.write_text(document)
    done = _amtool("check-config", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def taken_over(fragment):
    """A user's own configuration that has taken the fragment over."""
    own = {"route": {"receiver": "mine", "routes": fragment["route"]["routes"]}}
    return {**fragment, **own, "receivers": [{"name": "mine"}, *fragment["receivers"]]}


@pytest.mark.parametrize("team", ["", *TEAMS, "another"])
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_of_every_team_reaches_its_receivers(file, alert, team):
    labels = {"alertname": alert.name, **labels_of(alert), "notify": str(alert.notify), "cluster": "west"}
    labels |= {"team": team} if team else {}
    assert routed(file, labels) == expected(labels)


@pytest.mark.parametrize("notify", ["page", "ticket", "digest"])
def test_notify_decides_also_where_a_rule_changes_it(file, notify):
    labels = {"alertname": "Any", "component": "gpu", "notify": notify, "area": "hardware"}
    assert routed(file, labels) == expected(labels)


def test_an_alert_without_notify_is_a_ticket_and_one_of_others_goes_where_it_went_before(file):
    assert routed(file, {"alertname": "Any", "component": "gpu"}) == ["gpu-ticket"]
    assert routed(file, {"alertname": "KubePodNotReady", "severity": "warning", "notify": "page"}) == ["other"]


def routes(route: Route = GPU):
    yield route
    for each in route.routes:
        yield from routes(each)


def test_a_digest_is_sent_in_one_hour_of_the_day_in_which_groups_are_looked_at_once():
    (times,) = (time for interval in time_intervals() for span in interval["time_intervals"] for time in span["times"])
    begin, end = (int(times[key][:2]) * 60 + int(times[key][3:]) for key in ("start_time", "end_time"))
    digests = [each for each in routes() if each.active]
    assert {str(matcher) for each in digests for matcher in each.matchers} >= {'notify="digest"', 'team="research"'}
    assert {each.active for each in digests} == {MORNING}
    assert end - begin == 60
    (own,) = (each for each in digests if each.group_interval)
    assert (own.group_interval, own.group_by) == ("1h", ("cluster", "team"))
    assert all(not each.group_by for each in own.routes), "the groups of teams are those of the digest"


def test_the_demo_posts_to_its_receiver_at_once_and_at_any_time():
    loaded = yaml.safe_load(alertmanager_configuration("http://127.0.0.1:5001/hook"))
    urls = {receiver["name"]: receiver["webhook_configs"][0]["url"] for receiver in loaded["receivers"]}
    assert urls["gpu-digest"] == "http://127.0.0.1:5001/hook/digest"
    assert "active_time_intervals" not in yaml.safe_dump(loaded["route"])
    assert {(each["group_wait"], each["group_interval"]) for each in nested(loaded["route"])} == {("1s", "1s")}


def nested(route):
    yield route
    for each in route.get("routes", ()):
        yield from nested(each)


def test_secrets_are_in_files_and_nowhere_in_the_configuration():
    text = yaml.safe_dump(configuration())
    assert "_file: /etc/alertmanager/secrets/gpugauge/" in text
    for key in ("routing_key", "service_key", "api_url", "auth_password", "credentials", "bearer_token", "api_key"):
        assert f"{key}:" not in text
