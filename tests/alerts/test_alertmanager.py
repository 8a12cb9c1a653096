"""The routing example: amtool accepts it, every alert reaches the receiver of its `notify`, inhibitions use names."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from alerts import GROUPS
from alerts.routing.alertmanager import INHIBITIONS, alertmanager_example
from alerts.rules.rule import Alert
from alerts.rules.rulefile import labels_of
from demo.prometheus import alertmanager_configuration
from tests.alerts.promtool import tool

pytestmark = pytest.mark.prometheus

EXAMPLE = Path(__file__).parents[2] / "deploy/generated/alertmanager/example.yaml"
ALERTS = [rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)]
FOREIGN = {"KubeNodeNotReady", "KubeNodeUnreachable"}


def _amtool(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([tool("amtool"), *arguments], capture_output=True, text=True, check=False)


def _routed(file: Path, receiver: str, labels: dict[str, str]) -> bool:
    given = [f"{key}={value}" for key, value in labels.items()]
    done = _amtool("config", "routes", "test", f"--config.file={file}", f"--verify.receivers={receiver}", *given)
    return done.returncode == 0


def test_amtool_accepts_the_example_and_the_configuration_of_the_demo(tmp_path):
    variant = tmp_path / "demo.yaml"
    variant.write_text(alertmanager_configuration("http://127.0.0.1:5001"))
    for path in (EXAMPLE, variant):
        done = _amtool("check-config", str(path))
        assert done.returncode == 0, done.stdout + done.stderr
    assert EXAMPLE.read_text() == alertmanager_example()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_reaches_the_receiver_of_its_notify_and_no_other(alert):
    labels = {"alertname": alert.name, **labels_of(alert), "namespace": "team-a", "cluster": "west"}
    assert _routed(EXAMPLE, f"gpu-{alert.notify}", labels)
    assert not _routed(EXAMPLE, "other", labels)


@pytest.mark.parametrize("notify", ["page", "ticket", "digest"])
def test_notify_alone_decides(notify):
    assert _routed(EXAMPLE, f"gpu-{notify}", {"alertname": "Any", "component": "gpu", "notify": notify})


def test_alerts_of_others_go_where_they_went_before():
    assert _routed(EXAMPLE, "other", {"alertname": "KubePodNotReady", "severity": "warning", "notify": "page"})


def test_alerts_of_the_demo_are_posted_to_its_receiver_at_once():
    loaded = yaml.safe_load(alertmanager_configuration("http://127.0.0.1:5001/hook"))
    urls = {receiver["name"]: receiver["webhook_configs"][0]["url"] for receiver in loaded["receivers"]}
    assert urls["gpu-digest"] == "http://127.0.0.1:5001/hook/digest"
    assert set(urls) == {"other", "gpu-page", "gpu-ticket", "gpu-digest"}
    routes = [loaded["route"], *loaded["route"]["routes"], *loaded["route"]["routes"][0]["routes"]]
    assert len(routes) == 5
    assert {(route["group_wait"], route["group_interval"]) for route in routes} == {("1s", "1s")}


def test_inhibitions_name_alerts_that_exist_and_keys_that_are_never_empty():
    names = {alert.name for alert in ALERTS} | FOREIGN
    for rule in INHIBITIONS:
        sides = []
        for side in ("source_matchers", "target_matchers"):
            named = [re.fullmatch(r'alertname=~?"(.+)"', matcher) for matcher in rule[side]]
            sides.append({name for found in named if found for name in found[1].split("|")})
            assert sides[-1], f"{side} names no alert"
            assert sides[-1] <= names
            assert all(f'{key}=~".+"' in rule[side] for key in rule["equal"] if key != "cluster")
        assert not sides[0] & sides[1], "an alert that is source and target silences nothing"


def test_no_inhibition_silences_hardware():
    hardware = {alert.name for alert in ALERTS if alert.area == "hardware"}
    for rule in INHIBITIONS:
        assert not any(name in matcher for matcher in rule["target_matchers"] for name in hardware)
        assert not any("component" in matcher for matcher in rule["target_matchers"])
