"""Memory from a stock dcgm-exporter: in total used + free, or total - reserved, which is the same."""

import pytest

from tests.alerts.promtool import RuleFixture, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

RECORDED = ("gpugauge_device_memory_used_bytes", "gpugauge_device_memory_total_bytes")
MIB = 1 << 20
NOTHING = (None, None)
CASES = {
    "used-free": ({"USED": 30, "FREE": 10}, (30, 40)),
    "all": ({"USED": 30, "FREE": 10, "RESERVED": 8, "TOTAL": 48, "USED_PERCENT": 0.75}, (30, 40)),
    "used-total-reserved": ({"USED": 30, "RESERVED": 8, "TOTAL": 48}, (30, 40)),
    "used-free-total": ({"USED": 30, "FREE": 10, "TOTAL": 48}, (30, 40)),
    "percent": ({"USED_PERCENT": 0.75}, NOTHING),
    "used": ({"USED": 30}, (30, None)),
    "used-total": ({"USED": 30, "TOTAL": 48}, (30, None)),
    "total-reserved": ({"RESERVED": 8, "TOTAL": 48}, (None, 40)),
    "free-total": ({"FREE": 10, "TOTAL": 48}, NOTHING),
    "unused": ({"USED": 0, "FREE": 40}, (0, 40)),
    "zeros": ({"USED": 0, "FREE": 0, "RESERVED": 0, "TOTAL": 0}, (0, None)),
    "unified": ({}, NOTHING),
}
"""By UUID: the fields in MiB, and what is recorded in MiB: used, and what can be allocated."""


def test_memory_has_one_definition_and_nothing_is_made_up_where_a_part_is_missing(tmp_path):
    fixture = RuleFixture()
    for uuid, (fields, recorded) in CASES.items():
        labels = {"gpu": "0", "UUID": uuid, "hostname": "n", "job": "dcgm-exporter", "instance": "n:9400"}
        fixture.add("DCGM_FI_DEV_GPU_TEMP", labels, "35x10")
        for name, value in fields.items():
            fixture.add(f"DCGM_FI_DEV_FB_{name}", labels, f"{value}x10")
        for name, value in zip(RECORDED, recorded, strict=True):
            labels = {"UUID": uuid, "node": "n", "adapter": "dcgm-exporter", "__name__": name}
            found = [] if value is None else [(labels, value * MIB)]
            fixture.expect(f'{name}{{UUID="{uuid}"}}', 2, *found)
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""
