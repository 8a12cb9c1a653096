"""GPUs whose clocks are held down, power limits, and MIG devices by profile: each once, and nothing where unknown."""

import pytest

from alerts import GROUPS
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

NAME = "__name__"
NODE = {"cluster": "c", "node": "n"}
TARGETS = ({"job": "gpugauge-node"}, {"job": "again"})
"""Two scrapes of one exporter."""


def check(tmp_path, fixture):
    path = write_test(tmp_path / "test.json", write_rules(tmp_path, GROUPS), [fixture], GROUPS)
    assert run(path)[path] == ""


def test_gpus_with_clock_events_count_once_per_reason_and_limits_add_up(tmp_path):
    fixture = RuleFixture()
    for target in TARGETS:
        for uuid, hot in (("GPU-1", 1), ("GPU-2", 1), ("GPU-3", 0)):
            gpu = {**NODE, **target, "UUID": uuid}
            fixture.add("gpugauge_clock_event", {**gpu, "reason": "hw_thermal"}, always(hot))
            fixture.add("gpugauge_clock_event", {**gpu, "reason": "power_cap"}, always(0))
            fixture.add("gpugauge_gpu_power_limit_watts", gpu, always(700))
    expected = {NAME: "node:gpu_clock_events:count", **NODE, "reason": "hw_thermal"}
    fixture.expect("node:gpu_clock_events:count", 5, (expected, 2))
    fixture.expect("node:gpu_power_limit_watts:sum", 5, ({NAME: "node:gpu_power_limit_watts:sum", **NODE}, 2100))
    check(tmp_path, fixture)


def test_mig_devices_are_counted_by_profile_and_a_divided_gpu_instance_is_none_itself(tmp_path):
    fixture = RuleFixture()
    devices = (
        ("", "", "", None, None),
        ("1", "", "3g.40gb", 1, 0.5),
        ("2", "", "3g.40gb", 0, 0.25),
        ("5", "", "2g.20gb", None, None),
        ("5", "0", "1c.2g.20gb", 1, 0.75),
        ("5", "1", "1c.2g.20gb", None, None),
    )
    for target in TARGETS:
        for gi, ci, profile, pods, busy in devices:
            device = {**NODE, **target, "UUID": "GPU-1", "GPU_I_ID": gi, "GPU_CI_ID": ci}
            fixture.add("gpugauge_device_info", {**device, "model": "M", "GPU_I_PROFILE": profile}, always(1))
            if pods is not None:
                fixture.add("gpugauge_device_allocated_pods", device, always(pods))
                fixture.add("gpugauge_device_busy_ratio", device, always(busy))
    of_profile = {
        "model:gpu_mig_devices:count": {"3g.40gb": 2, "1c.2g.20gb": 2},
        "model:gpu_mig_devices_allocated:count": {"3g.40gb": 1, "1c.2g.20gb": 1},
        "model:gpu_mig_busy:sum": {"3g.40gb": 0.75, "1c.2g.20gb": 0.75},
        "model:gpu_mig_busy:count": {"3g.40gb": 2, "1c.2g.20gb": 1},
    }
    for name, values in of_profile.items():
        labels = {NAME: name, "cluster": "c", "model": "M"}
        samples = [({**labels, "GPU_I_PROFILE": profile}, value) for profile, value in values.items()]
        fixture.expect(name, 5, *samples)
    check(tmp_path, fixture)
