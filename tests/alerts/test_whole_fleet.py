"""The whole set of rules on a whole fleet: silent while all is well, health alone in the dark, and no flapping."""

import pytest

from alerts import ADAPTERS, GROUPS
from tests.alerts import golden_fleet
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import ALERTS, check

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

NODES = {"node-whole": "whole", "node-mig": "mig", "node-shared": "time_sliced"}
LOADED = tuple(group for group in GROUPS if group not in ADAPTERS)
QUIET = ({"alertname": "GPUAlertingWatchdog"}, 1.0)


def _fleet(samples: int) -> RuleFixture:
    fixture = RuleFixture()
    for name, kind in NODES.items():
        golden_fleet.node(fixture, kind, name, samples, instance=f"{name}:9400")
    golden_fleet.watcher(fixture, NODES, samples)
    return fixture


def test_on_a_sound_fleet_with_mig_and_shared_gpus_nothing_fires_for_six_hours(tmp_path):
    fixture = _fleet(760)
    for minute in range(10, 361, 25):
        fixture.expect('count by (alertname) (ALERTS{component="gpu"})', minute, QUIET)
    check(tmp_path, fixture, groups=LOADED)


def test_in_the_dark_only_alerts_about_exporters_and_watcher_fire(tmp_path):
    fixture = _fleet(100)
    for name in NODES:
        fixture.add(
            "up", {"job": "gpugauge-node", "instance": f"{name}:9400", "node": name, "dark": "1"}, "_x101 0x150"
        )
    watcher = {"job": "gpugauge-cluster", "instance": "watcher-0:9410", "dark": "1"}
    fixture.add("up", watcher, "_x101 0x150")
    for minute in (70, 80, 110):
        names = ("GPUExporterDown", "GPUFleetBlind", "GPUWatcherDown", "GPUAlertingWatchdog")
        assert {ALERTS[name].area for name in names} == {"exporter"}
        found = [({"alertname": name}, 3.0 if name == "GPUExporterDown" else 1.0) for name in names]
        fixture.expect('count by (alertname) (ALERTS{component="gpu", alertstate="firing"})', minute, *found)
    check(tmp_path, fixture, groups=LOADED)


def test_a_rolling_upgrade_of_the_exporter_starts_no_alert_and_ends_none(tmp_path):
    """Each exporter is away for four minutes, one after the other; a lost GPU is one alert throughout."""
    fixture = RuleFixture()
    for number, (name, kind) in enumerate(NODES.items()):
        begin = 60 + 12 * number
        golden_fleet.node(fixture, kind, name, begin - 8, instance=f"10.0.0.{number}:9400")
        golden_fleet.node(fixture, kind, name, 200, instance=f"10.0.1.{number}:9400", begin=begin)
        broken = {"node": name, "UUID": "GPU-lost", "gpu": "9", "job": "gpugauge-node"}
        for instance, values in ((0, f"0x{begin - 8} stale"), (1, f"_x{begin} 0x200")):
            fixture.add("gpugauge_device_up", {**broken, "instance": f"10.0.{instance}.{number}:9400"}, values)
    golden_fleet.watcher(fixture, NODES, 300)
    for half_minutes in range(30, 200, 5):
        found = (QUIET, ({"alertname": "GPULost"}, 3.0))
        expression = 'count by (alertname) (ALERTS{component="gpu", alertstate="firing"})'
        fixture.expect(expression, half_minutes / 2, *found)
    check(tmp_path, fixture, groups=LOADED)
