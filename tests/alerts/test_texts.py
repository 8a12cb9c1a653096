"""Values in texts of alerts are written as people write them."""

import pytest

from alerts import GROUPS
from alerts.rules.rule import Alert, AlertFamily, Area, Group, Notify, Severity
from alerts.rules.rulefile import annotations_of, labels_of
from alerts.rules.texts import PIPELINES
from tests.alerts.promtool import RuleFixture, dashboard_of, run, write_rules, write_test

RATIOS = {
    "0": "0 %",
    "0.00000312": "0 %",
    "0.000312": "0.03 %",
    "0.004": "0.4 %",
    "0.0099": "0.9 %",
    "0.01": "1 %",
    "0.02063": "2 %",
    "0.1": "10 %",
    "0.1259": "12 %",
    "0.299": "29 %",
    "1": "100 %",
}
SECONDS = {
    "30": "30 seconds",
    "60": "1 minute",
    "900": "15 minutes",
    "2533": "42 minutes",
    "3600": "1 hour",
    "4980": "1 hour 23 minutes",
    "39600": "11 hours",
    "86400": "1 day",
    "90061": "1 day 1 hour",
    "187200": "2 days 4 hours",
}
BYTES = {"512": "512 B", "1073741824": "1 GiB", "85899345920": "80 GiB"}


def _alert(number: int, value: str, name: str) -> Alert:
    text = f"Of {{{{ $value | {name} }}}}."
    described = (Severity.WARNING, Area.EFFICIENCY, Notify.DIGEST)
    return Alert(f"A{number}", f"vector({value}) >= 0", *described, "s", text, "0s", AlertFamily.UTILIZATION)


@pytest.mark.prometheus
def test_ratios_are_percentages_and_seconds_are_minutes_hours_and_days(tmp_path):
    rows = [(*row, "asPercent") for row in RATIOS.items()] + [(*row, "asDuration") for row in SECONDS.items()]
    rows += [(*row, "asBytes") for row in BYTES.items()]
    fixture, alerts = RuleFixture(), []
    for number, (value, text, name) in enumerate(rows):
        alert = _alert(number, value, name)
        alerts.append(alert)
        written = {"description": f"Of {text}.", "dashboard_url": dashboard_of(alert, {})}
        fixture.expect_alerts(alert.name, 1, (labels_of(alert), {**annotations_of(alert), **written}))
    groups = (Group("texts", tuple(alerts)),)
    path = write_test(tmp_path / "test.json", write_rules(tmp_path, groups), [fixture], groups)
    assert run(path)[path] == ""


def test_every_value_in_a_text_is_written_for_people():
    for alert in (rule for group in GROUPS for rule in group.rules if isinstance(rule, Alert)):
        for text in (alert.summary, alert.description, *(text for _, text in alert.annotations)):
            assert "humanize" not in text, f"{alert.name}: use one of {sorted(PIPELINES)}"
