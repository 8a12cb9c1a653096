"""The page of every scenario: as it was agreed to look, strict, within its budget, and free of sentinels.

`pytest --update-golden` writes the pages anew; their difference is then read like any other.
"""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.alerts.promtool import tool
from tests.exporter.node.scenario_flow import (
    SCENARIOS,
    Simulation,
    default_counters,
    every_counter,
    openmetrics_series_of,
    series_of,
    without_volatile,
)

GOLDEN = Path(__file__).parents[2] / "golden"
MOMENTS = {
    "lost": (5, 20, 45),
    "mig_reconfigured": (5, 25, 60),
    "restart": (5, 12, 20),
    "sentinels": (5, 15, 25, 35, 45),
    "stale": (19, 60, 3600),
    "time_sliced": (61,),
    "mig": (61,),
    "whole": (61,),
    "xid": (20,),
}
"""Seconds; 5 for the others. The reads of `hang` and `crash` can only be survived in a child."""
PAGES = [(name, t) for name in SCENARIOS for t in MOMENTS.get(name, (5,))]
KEPT = {"sentinels": (5,)}
"""Moments with a golden file where not every one has its own."""
SENTINELS = re.compile(r"<<<|14073748835532[89]|14073748835533[0-9]|922337203685477\d{4}|214748364[0-9]")
"""The four values that mean none of every type: text, double, 64 and 32 bits."""
RATHER_AS_FLOAT = (2.0**47, 2.0**63, 2.0**31)
ABOUT_REJECTIONS = ("gpugauge_field_unsupported_devices", "gpugauge_rejected_values_total")
"""One for each field and reason: none on a healthy board."""
NOT_SHOWN = ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_DEV_XID_ERRORS")
"""Of the default file, what a healthy board without vGPU has not."""


@cache
def rendered(name, t, every):
    return Simulation(name, every_counter() if every else default_counters(), t).page()


def page(name, t, *, every=False):
    return rendered(name, t, every)


@pytest.mark.parametrize(("name", "t"), [(n, t) for n, t in PAGES if t in KEPT.get(n, (t,))])
def test_the_page_of_a_scenario_is_the_one_that_was_agreed_on(golden, name, t):
    first = t == MOMENTS.get(name, (5,))[0]
    golden(without_volatile(page(name, t).text.decode()), GOLDEN / (f"{name}.prom" if first else f"{name}-{t}s.prom"))


def test_the_openmetrics_page_is_the_one_that_was_agreed_on(golden):
    golden(without_volatile(page("mig", 61).openmetrics.decode()), GOLDEN / "mig.openmetrics")


def test_every_golden_page_belongs_to_a_scenario():
    owners = {path.name.partition(".")[0].rpartition("-")[0] or path.stem for path in GOLDEN.glob("*.prom")}
    assert owners == SCENARIOS.keys()


@pytest.mark.parametrize("every", [False, True], ids=["default fields", "every field"])
@pytest.mark.parametrize(("name", "t"), PAGES)
def test_strict_parsers_accept_both_formats_and_find_the_same_series(name, t, every):
    both = page(name, t, every=every)
    assert series_of(both.text) == openmetrics_series_of(both.openmetrics)
    assert both.dropped == 0


@pytest.mark.parametrize(("name", "t"), PAGES)
def test_promtool_has_nothing_to_say_about_our_own_names(name, t):
    known = [re.compile(line) for line in (GOLDEN / "promtool.txt").read_text().splitlines() if line[0] != "#"]
    check = [tool("promtool"), "check", "metrics"]
    said = subprocess.run(check, input=page(name, t).text, capture_output=True, check=False)
    lines = {*said.stderr.decode().splitlines(), *said.stdout.decode().splitlines()}
    assert [line for line in sorted(lines) if not any(pattern.fullmatch(line) for pattern in known)] == []


@pytest.mark.parametrize("t", MOMENTS["sentinels"])
def test_no_sentinel_reaches_a_page_whatever_is_asked_for(t):
    both = page("sentinels", t, every=True)
    assert not SENTINELS.search(both.text.decode())
    shown = series_of(both.text)
    assert not [key for key, value in shown.items() if key[0].startswith("DCGM_") and value in RATHER_AS_FLOAT]
    assert any(key[0] == "gpugauge_rejected_values_total" for key in shown)


def owned(shown):
    """Number of series by (UUID, instance, compute instance) of what they describe."""
    counts = Counter()
    for _, pairs in shown:
        labels = dict(pairs)
        if "UUID" in labels:
            counts[labels["UUID"], labels.get("GPU_I_ID"), labels.get("GPU_CI_ID")] += 1
    return counts


@pytest.mark.parametrize(("name", "t"), PAGES)
def test_a_gpu_has_at_most_60_series_and_an_instance_at_most_20(name, t):
    shown = series_of(page(name, t).text)
    counts = owned(shown)
    assert all(count <= (20 if instance else 60) for (_, instance, _), count in counts.items()), counts
    of_the_node = [metric for metric, pairs in shown if "UUID" not in dict(pairs) and metric not in ABOUT_REJECTIONS]
    assert len(of_the_node) <= 20


def test_the_budget_is_counted_on_pages_that_show_everything():
    shown = series_of(page("whole", 61).text)
    numbers = {row.name for row in default_counters().rows if row.type != "label"}
    assert numbers - {name for name, _ in shown} == set(NOT_SHOWN)
    assert len([key for key in owned(shown) if key[1] is None]) == 8
    assert len(owned(series_of(page("mig_56", 5).text))) == 8 + 56


@pytest.mark.parametrize(("name", "t", "unreadable"), [("lost", 20, 2), ("stale", 3600, 1)])
def test_a_board_without_values_has_no_dcgm_series_at_all(name, t, unreadable):
    shown = [(metric, dict(pairs)) for metric, pairs in series_of(page(name, t).text)]
    known = {labels["UUID"] for metric, labels in shown if metric == "gpugauge_device_info"}
    valued = {labels["UUID"] for metric, labels in shown if metric.startswith("DCGM_")}
    assert len(known - valued) == unreadable
