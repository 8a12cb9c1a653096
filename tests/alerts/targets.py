"""Scrape targets and what they expose, as Prometheus stores it, for tests of alerts that are not on pods."""

from collections.abc import Iterable

from alerts import GROUPS
from alerts.alerting import exporters, rules_health, watcher
from alerts.recorded import exporters as recorded_exporters
from alerts.rules.rule import QUICK_INTERVAL_SECONDS, Alert, Group
from alerts.rules.rulefile import labels_of
from tests.alerts.fleet import stored
from tests.alerts.promtool import Labels, RuleFixture, dashboard_of, run, write_rules, write_test

NOW = "0+30x1000"
"""A timestamp that is always the time of the scrape."""
EXPORTERS = (recorded_exporters.GROUP, exporters.GROUP, watcher.GROUP, rules_health.GROUP)
"""The groups about exporters and watchers: all groups take three times as long."""
ALERTS = {rule.name: rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)}


def node_target(fixture: RuleFixture, node: str, up: str, *, cluster: str = "", instance: str = "") -> None:
    """`up` of a node exporter, as our monitors label it."""
    labels = {"job": "gpugauge-node", "node": node, "instance": instance or f"{node}:9400", "cluster": cluster}
    fixture.add("up", {**labels, "pod": f"exporter-{instance}"}, up)


def on_node(fixture: RuleFixture, name: str, exposed: Labels, values: object, *, cluster: str = "") -> None:
    """A series of the node exporter of `exposed["node"]`."""
    target = {"job": "gpugauge-node", "instance": f"{exposed['node']}:9400", "cluster": cluster}
    fixture.add(name, {**target, **exposed}, values)


def watcher_target(fixture: RuleFixture, up: str, *, number: int = 0, cluster: str = "") -> None:
    """`up` of a cluster watcher, as our monitors label it."""
    fixture.add("up", {"job": "gpugauge-cluster", "instance": f"watcher-{number}:9410", "cluster": cluster}, up)


def on_watcher(
    fixture: RuleFixture, name: str, exposed: Labels, values: object, *, honor: bool = True, cluster: str = ""
) -> None:
    """A series of the watcher, with honor_labels or without."""
    target = {"job": "gpugauge-cluster", "instance": "watcher-0:9410", "namespace": "monitoring", "pod": "watcher-0"}
    fixture.add(name, stored(exposed, {**target, "cluster": cluster}, honor=honor), values)


def firing(fixture: RuleFixture, alert: str, minute: float, by: str, *found: str) -> None:
    """Expect exactly one firing alert for each of these values of the label `by`."""
    assert alert in ALERTS, f"no alert is called {alert}"
    chosen = f'alertname="{alert}", alertstate="firing"'
    fixture.expect(f"count by ({by}) (ALERTS{{{chosen}}})", minute, *(({by: value}, 1.0) for value in found))


def texts(
    fixture: RuleFixture, alert: str, minute: float, labels: Labels, summary: str, description: str, **more: str
) -> None:
    """Expect exactly one firing alert, with these labels besides those of every instance, and these texts."""
    rule = ALERTS[alert]
    every = {**labels_of(rule), **{key: value for key, value in labels.items() if value}}
    notes = {"summary": summary, "description": description, "dashboard_url": dashboard_of(rule, labels), **more}
    runbook = "https://github.com/gpugauge/gpugauge/blob/main/docs/runbook.md"
    fixture.expect_alerts(alert, minute, (every, {**notes, "runbook_url": f"{runbook}#{alert.lower()}"}))


def check(tmp_path, *fixtures: RuleFixture, groups: Iterable[Group] = EXPORTERS) -> None:
    """Run all fixtures with these groups of rules in one process."""
    groups = tuple(groups)
    names = write_rules(tmp_path, groups)
    path = write_test(tmp_path / "test.json", names, fixtures, groups, interval=QUICK_INTERVAL_SECONDS)
    assert run(path)[path] == ""
