"""DCGM_EXP_GPU_HEALTH_STATUS from the counters file to the exposition, and what is said where it has no series."""

from pathlib import Path

import pytest

from exporter.node.devices.counters.computed_metrics import HEALTH_STATUS, READ_BY_CALLS
from exporter.node.devices.counters.counters_file import parse
from exporter.node.devices.readings.health import HealthStatus
from tests.exporter.node.scenario_flow import series_of
from tests.exporter.node.test_computed_metrics import ComputedFlow
from tests.exporter.node.test_source_parity import expositions_through

BINDINGS = Path(__file__).parents[2] / "fakes" / "dcgm_bindings"
NAME = "DCGM_EXP_GPU_HEALTH_STATUS"
ROW = f"{NAME}, counter, Health."
STATUSES = (
    HealthStatus("GPU-a", "MEM", 20, "DCGM_FR_VOLATILE_DBE_DETECTED"),
    HealthStatus("GPU-a", "SM", 0, "DCGM_FR_OK"),
    HealthStatus("GPU-b", "MEM", 0, "DCGM_FR_OK"),
)


def test_each_result_is_a_series_of_its_gpu_as_in_dcgm_exporter():
    found = ComputedFlow(ROW).series(NAME, name="dcgm", more={"health": STATUSES})
    assert found == {
        ("GPU-a", "health_error_code=DCGM_FR_VOLATILE_DBE_DETECTED", "health_watch=MEM"): 20,
        ("GPU-a", "health_error_code=DCGM_FR_OK", "health_watch=SM"): 0,
        ("GPU-b", "health_error_code=DCGM_FR_OK", "health_watch=MEM"): 0,
    }


def test_a_gpu_that_is_down_has_no_result_and_one_of_an_earlier_collection_is_not_exposed_again():
    flow = ComputedFlow(ROW)
    flow.series(NAME, name="dcgm", more={"health": STATUSES})
    found = flow.series(NAME, down=("GPU-a",))
    assert {key[0] for key in found} == {"GPU-b"}
    assert flow.series(NAME, more={"health": None}) == {}


def test_only_the_row_asks_for_the_checks():
    assert READ_BY_CALLS[HEALTH_STATUS] in parse(ROW, "f").wanted
    assert READ_BY_CALLS[HEALTH_STATUS] not in parse("DCGM_FI_DEV_GPU_TEMP, gauge, T.", "f").wanted
    assert ComputedFlow().series(NAME, name="dcgm", more={"health": STATUSES}) == {}


def reasons(flow):
    return [problem.reason for problem in flow.flow.pipeline.collect().problems]


@pytest.mark.parametrize("source", ["nvml", "simulated"])
def test_a_source_without_health_checks_is_a_problem_while_the_row_is_there(source):
    flow = ComputedFlow(ROW)
    flow.source.name = source
    assert reasons(flow) == ["health_not_in_source"]
    flow.use("")
    assert reasons(flow) == []


def test_where_dcgm_makes_no_checks_only_its_own_problem_is_reported():
    flow = ComputedFlow(ROW)
    flow.source.name, flow.source.more = "dcgm", {"problems": (("health_bindings_missing", "x"),)}
    assert reasons(flow) == ["health_bindings_missing"]
    flow.source.fails = True
    assert reasons(flow) == []


@pytest.mark.process
def test_the_reader_process_checks_the_health_through_the_bindings(tmp_path):
    counters = parse(f"{ROW}\nDCGM_FI_DEV_GPU_TEMP, gauge, T.", "f")
    (exposition,) = expositions_through("dcgm", "whole", counters, tmp_path, 5, bindings=str(BINDINGS))
    found = [value for (name, _), value in series_of(exposition.text).items() if name == NAME]
    assert found == [0] * 8 * 11
