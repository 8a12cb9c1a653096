"""The label `team` of an alert: that of its namespace, also while the watcher is away, and `none` without one."""

import pytest

from alerts.rules.rule import Alert, AlertFamily, Area, Group, Notify, Severity
from alerts.rules.rulefile import labels_in_file
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import ALERTS, check, on_watcher

pytestmark = pytest.mark.prometheus

OWNED = Alert(
    "GPUOwned",
    'label_replace(gpugauge_quota_used == 1, "namespace", "$1", "gpu_namespace", "(.*)")',
    Severity.WARNING,
    Area.EFFICIENCY,
    Notify.DIGEST,
    "s",
    "d",
    "0s",
    AlertFamily.UTILIZATION,
)
GROUP = (Group("gpugauge-owned", (OWNED,)),)


def owned(fixture: RuleFixture, namespace: str, cluster: str = "") -> None:
    on_watcher(fixture, "gpugauge_quota_used", {"gpu_namespace": namespace}, always(1), cluster=cluster)


def teams(fixture: RuleFixture, minute: float, *found: tuple[str, str]) -> None:
    """Expect these namespaces and teams of the alert."""
    expected = [({"namespace": namespace, "team": team}, 1.0) for namespace, team in found]
    fixture.expect('count by (namespace, team) (ALERTS{alertname="GPUOwned"})', minute, *expected)


def test_it_is_the_team_of_the_namespace_in_its_own_cluster(tmp_path):
    fixture = RuleFixture()
    for namespace, team in (("ml", "research"), ("web", "serving"), ("loose", "")):
        owned(fixture, namespace, cluster="west")
        labels = {"gpu_namespace": namespace, "team": team, "cost_center": "7"}
        on_watcher(fixture, "gpugauge_namespace_info", labels, always(1), cluster="west")
    owned(fixture, "ml2", cluster="west")
    on_watcher(fixture, "gpugauge_namespace_info", {"gpu_namespace": "ml2", "team": "x"}, always(1), cluster="east")
    teams(fixture, 10, ("ml", "research"), ("web", "serving"), ("loose", "none"), ("ml2", "none"))
    check(tmp_path, fixture, groups=GROUP)


def test_an_outage_of_the_watcher_does_not_take_it_away(tmp_path):
    fixture = RuleFixture()
    owned(fixture, "ml")
    on_watcher(fixture, "gpugauge_namespace_info", {"gpu_namespace": "ml", "team": "research"}, "1x20 stale")
    teams(fixture, 5, ("ml", "research"))
    teams(fixture, 50, ("ml", "research"))
    check(tmp_path, fixture, groups=GROUP)


def test_every_alert_with_a_namespace_has_it_and_no_other():
    assert "team" in labels_in_file(ALERTS["GPUPodLowUtilization"])
    assert "team" in labels_in_file(ALERTS["GPUWorkloadPending"])
    assert "team" not in labels_in_file(ALERTS["GPUExporterDown"])
