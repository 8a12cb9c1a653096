"""The share of used memory is used / (total - reserved), from whichever fields are there; absent where one is not."""

import pytest

from tests.alerts.promtool import RuleFixture, run, write_rules, write_test

pytestmark = pytest.mark.prometheus

RECORDED = ("gpu_instance:memory_used:bytes", "gpu_instance:memory_total:bytes", "gpu_instance:memory_used:ratio")
MIB = 1 << 20
NOTHING = (None, None, None)
CASES = {
    "used-free": ({"USED": 30, "FREE": 10}, (30, 40, 0.75)),
    "all": ({"USED": 30, "FREE": 10, "RESERVED": 8, "TOTAL": 48, "USED_PERCENT": 0.75}, (30, 40, 0.75)),
    "used-total-reserved": ({"USED": 30, "RESERVED": 8, "TOTAL": 48}, (30, 40, 0.75)),
    "used-free-total": ({"USED": 30, "FREE": 10, "TOTAL": 48}, (30, 40, 0.75)),
    "percent": ({"USED_PERCENT": 0.75}, (None, None, 0.75)),
    "ratio": ({"USED_RATIO": 0.25}, (None, None, 0.25)),
    "used-percent": ({"USED": 30, "USED_PERCENT": 0.75}, (30, None, 0.75)),
    "used": ({"USED": 30}, (30, None, None)),
    "used-total": ({"USED": 30, "TOTAL": 48}, (30, None, None)),
    "total-reserved": ({"RESERVED": 8, "TOTAL": 48}, (None, 40, None)),
    "free-total": ({"FREE": 10, "TOTAL": 48}, NOTHING),
    "unused": ({"USED": 0, "FREE": 40}, (0, 40, 0)),
    "zeros": ({"USED": 0, "FREE": 0, "RESERVED": 0, "TOTAL": 0}, (0, None, None)),
    "unified": ({}, NOTHING),
}
"""By UUID: the fields in MiB, and what is recorded in MiB: used, what can be allocated, the share."""


def test_the_share_has_one_definition_and_nothing_is_made_up_where_a_part_is_missing(tmp_path):
    fixture = RuleFixture()
    for uuid, (fields, recorded) in CASES.items():
        labels = {"gpu": "0", "UUID": uuid, "hostname": "n", "job": "gpugauge-node", "instance": "n:9400"}
        fixture.add("DCGM_FI_DEV_GPU_TEMP", labels, "35x10")
        for name, value in fields.items():
            fixture.add(f"DCGM_FI_DEV_FB_{name}", labels, f"{value}x10")
        for name, value in zip(RECORDED, recorded, strict=True):
            unit = MIB if name.endswith("bytes") else 1
            found = [] if value is None else [({"UUID": uuid, "node": "n", "__name__": name}, value * unit)]
            fixture.expect(f'{name}{{UUID="{uuid}"}}', 2, *found)
    path = write_test(tmp_path / "test.json", write_rules(tmp_path), [fixture])
    assert run(path)[path] == ""
