"""The exposition of every scenario: equal to its golden file, strict, within its budget, and without blank values.

`pytest --update-golden` writes the golden files again; review their diff as you would review code.
"""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from exporter.node.devices.counters.counters_file import parse
from tests.alerts.promtool import tool
from tests.exporter.node.dra.known import of_scenario
from tests.exporter.node.scenario_flow import (
    SCENARIOS,
    SimulatedFlow,
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
"""Scenario times in seconds; 5 for the others. `hang` and `crash` begin later: they would end the test process."""
ALL_MOMENTS = [(name, t) for name in SCENARIOS for t in MOMENTS.get(name, (5,))]
GOLDEN_MOMENTS = {"sentinels": (5,)}
"""The moments with a golden file, of scenarios whose moments do not all have one."""
BLANK_TEXT = re.compile(r"<<<|14073748835532[89]|14073748835533[0-9]|922337203685477\d{4}|214748364[0-9]")
"""DCGM's four blank values of each type (text, double, 64-bit and 32-bit integer), as they would be exposed."""
BLANK_NUMBERS = (2.0**47, 2.0**63, 2.0**31)
ABOUT_REJECTIONS = ("gpugauge_field_unsupported_devices", "gpugauge_rejected_values_total")
"""They have one series for each field and reason, none on a healthy GPU, and do not count for the budget."""
NOT_EXPOSED = ("DCGM_FI_DEV_VGPU_LICENSE_STATUS",)
"""Rows of the default file without a value on a healthy GPU without vGPU."""


@cache
def rendered(name, t, every):
    return SimulatedFlow(name, every_counter() if every else default_counters(), t).exposition()


def exposition_of(name, t, *, every=False):
    return rendered(name, t, every)


@pytest.mark.parametrize(("name", "t"), [(n, t) for n, t in ALL_MOMENTS if t in GOLDEN_MOMENTS.get(n, (t,))])
def test_the_exposition_of_a_scenario_is_equal_to_its_golden_file(golden, name, t):
    first = t == MOMENTS.get(name, (5,))[0]
    golden(
        without_volatile(exposition_of(name, t).text.decode()),
        GOLDEN / (f"{name}.prom" if first else f"{name}-{t}s.prom"),
    )


def test_the_exposition_in_the_openmetrics_format_is_equal_to_its_golden_file(golden):
    golden(without_volatile(exposition_of("mig", 61).openmetrics.decode()), GOLDEN / "mig.openmetrics")


def test_the_exposition_of_components_is_equal_to_its_golden_file(golden):
    rows = (GOLDEN.parent / "fakes" / "components.csv").read_text()
    exposition = SimulatedFlow("components", parse(rows, "components.csv"), 5).exposition()
    golden(without_volatile(exposition.text.decode()), GOLDEN / "components-fields.prom")
    assert series_of(exposition.text) == openmetrics_series_of(exposition.openmetrics)


def test_the_exposition_of_what_pods_use_of_shared_gpus_is_equal_to_its_golden_file(golden):
    exposition = SimulatedFlow("time_sliced", None, 61, processes=True, virtual_gpus=True).exposition()
    golden(without_volatile(exposition.text.decode()), GOLDEN / "time_sliced-processes.prom")
    exposed = series_of(exposition.text)
    assert exposed == openmetrics_series_of(exposition.openmetrics)
    # Of each container two, and two with the label vgpu; of each device one of what runs in no pod.
    containers = Counter(dict(pairs)["UUID"] for name, pairs in exposed if name == "gpugauge_pod_gpu_memory_used_bytes")
    before = series_by_device(series_of(exposition_of("time_sliced", 61).text))
    for device, count in series_by_device(exposed).items():
        assert count - before[device] <= 4 * containers[device[0]] + 1


def test_the_exposition_with_the_slices_and_claims_of_a_node_is_equal_to_its_golden_file(golden):
    exposition = SimulatedFlow("dra", default_counters(), 5, dra=of_scenario()).exposition()
    golden(without_volatile(exposition.text.decode()), GOLDEN / "dra-slices.prom")
    assert series_of(exposition.text) == openmetrics_series_of(exposition.openmetrics)


def test_every_golden_file_belongs_to_a_scenario():
    owners = {path.name.partition(".")[0].rpartition("-")[0] or path.stem for path in GOLDEN.glob("*.prom")}
    assert owners == SCENARIOS.keys()


@pytest.mark.parametrize("every", [False, True], ids=["default fields", "every field"])
@pytest.mark.parametrize(("name", "t"), ALL_MOMENTS)
def test_strict_parsers_accept_both_formats_and_find_the_same_series(name, t, every):
    both = exposition_of(name, t, every=every)
    assert series_of(both.text) == openmetrics_series_of(both.openmetrics)
    assert both.dropped == 0


@pytest.mark.prometheus
@pytest.mark.parametrize(("name", "t"), ALL_MOMENTS)
def test_promtool_finds_no_fault_with_names_of_our_own(name, t):
    known = [re.compile(line) for line in (GOLDEN / "promtool.txt").read_text().splitlines() if line[0] != "#"]
    check = [tool("promtool"), "check", "metrics"]
    done = subprocess.run(check, input=exposition_of(name, t).text, capture_output=True, check=False)
    lines = {*done.stderr.decode().splitlines(), *done.stdout.decode().splitlines()}
    assert [line for line in sorted(lines) if not any(pattern.fullmatch(line) for pattern in known)] == []


@pytest.mark.parametrize("t", MOMENTS["sentinels"])
def test_no_blank_value_is_exposed_whichever_fields_are_configured(t):
    both = exposition_of("sentinels", t, every=True)
    assert not BLANK_TEXT.search(both.text.decode())
    exposed = series_of(both.text)
    assert not [key for key, value in exposed.items() if key[0].startswith("DCGM_") and value in BLANK_NUMBERS]
    assert any(key[0] == "gpugauge_rejected_values_total" for key in exposed)


def series_by_device(exposed):
    """Number of series by the device that they describe: (UUID, GPU instance id, compute instance id)."""
    counts = Counter()
    for _, pairs in exposed:
        labels = dict(pairs)
        if "UUID" in labels:
            counts[labels["UUID"], labels.get("GPU_I_ID"), labels.get("GPU_CI_ID")] += 1
    return counts


@pytest.mark.parametrize(("name", "t"), ALL_MOMENTS)
def test_a_gpu_has_at_most_60_series_and_a_mig_device_at_most_24(name, t):
    exposed = series_of(exposition_of(name, t).text)
    counts = series_by_device(exposed)
    assert all(count <= (24 if instance else 60) for (_, instance, _), count in counts.items()), counts
    of_the_node = [metric for metric, pairs in exposed if "UUID" not in dict(pairs) and metric not in ABOUT_REJECTIONS]
    assert len(of_the_node) <= 20


def test_the_budget_is_counted_on_expositions_with_every_row_of_the_default_file():
    exposed = series_of(exposition_of("whole", 61).text)
    numbers = {row.name for row in default_counters().rows if row.type != "label"}
    assert numbers - {name for name, _ in exposed} == set(NOT_EXPOSED)
    assert len([key for key in series_by_device(exposed) if key[1] is None]) == 8
    assert len(series_by_device(series_of(exposition_of("mig_56", 5).text))) == 8 + 56


@pytest.mark.parametrize(("name", "t", "unreadable"), [("lost", 20, 2), ("stale", 3600, 1)])
def test_a_gpu_that_cannot_be_read_has_no_dcgm_series_at_all(name, t, unreadable):
    exposed = [(metric, dict(pairs)) for metric, pairs in series_of(exposition_of(name, t).text)]
    known = {labels["UUID"] for metric, labels in exposed if metric == "gpugauge_device_info"}
    valued = {labels["UUID"] for metric, labels in exposed if metric.startswith("DCGM_")}
    assert len(known - valued) == unreadable
