"""The registration of GPUs at the NVLink fabric, through every version of the NVML call that drivers have."""

import msgspec
import pytest

from exporter.node.devices.fields.field_ids import FABRIC
from exporter.node.nvml.calls.fabric import DCGM_CODES
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted

CLUSTER = "0d1e2f30-4152-4637-8495-a6b7c8d9eafb"
REGISTERED = (3, 0, CLUSTER, 7, 0x1A6, 2)
THIRD, SECOND, FIRST = "nvmlDeviceGetGpuFabricInfoV 3", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo"


def registered(*values, faults=()):
    """The scenario `whole` whose GPUs have these values of 170 to 175."""
    document = load("whole").document
    own = {str(field): value for field, value in zip(FABRIC, values, strict=True) if value is not None}
    devices = tuple(msgspec.structs.replace(gpu, fields={**gpu.fields, **own}) for gpu in document.devices)
    return Scenario("fabric", msgspec.structs.replace(document, devices=devices, events=tuple(faults)))


def of_first(readings):
    return tuple(column(readings, field)[0] for field in FABRIC)


def test_a_registered_gpu_has_its_cluster_its_clique_and_its_health(scenario_table, open_source):
    scenario_table(registered(*REGISTERED))
    readings = open_source(*FABRIC).read()
    assert of_first(readings) == REGISTERED
    assert readings.rejections == ()


@pytest.mark.parametrize("state", [1, 2])
def test_until_the_registration_has_ended_only_status_and_health_are_known(scenario_table, open_source, state):
    scenario_table(registered(state, 0, CLUSTER, 7, 0x1A6, 2))
    readings = open_source(*FABRIC).read()
    assert of_first(readings) == (state, None, None, None, 0x1A6, 2)
    assert counted(readings, 171) == counted(readings, 172) == counted(readings, 173) == {"blank": 8}


def test_a_registration_that_failed_has_the_code_that_dcgm_gives(scenario_table, open_source):
    scenario_table(registered(4, -11, CLUSTER, 7, 0x1A6, 2))
    assert of_first(open_source(*FABRIC).read()) == (4, -11, None, None, 0x1A6, 2)
    scenario_table(registered(4, -3, CLUSTER, 7, 0x1A6, 2))
    assert of_first(open_source(*FABRIC).read())[:2] == (4, -8)
    assert DCGM_CODES[15] == -18


def test_a_gpu_without_a_fabric_says_so_and_has_nothing_else(scenario_table, open_source):
    scenario_table(registered(0, 0, CLUSTER, 7, 0x1A6, 2))
    readings = open_source(*FABRIC).read()
    assert of_first(readings) == (0, None, None, None, None, None)
    assert counted(readings, 172) == counted(readings, 174) == {"not_supported": 8}


def test_a_state_that_nobody_knows_is_a_blank(scenario_table, open_source):
    scenario_table(registered(9, 0, CLUSTER, 7, 0x1A6, 2))
    readings = open_source(*FABRIC).read()
    assert of_first(readings) == (None, None, None, None, 0x1A6, 2)
    assert counted(readings, 170) == {"blank": 8}


@pytest.mark.parametrize("code", [13, 25])
def test_a_driver_without_the_third_record_has_everything_but_the_summary(scenario_table, open_source, code):
    scenario_table(registered(*REGISTERED, faults=[CallFault(THIRD, status=code)]))
    readings = open_source(*FABRIC).read()
    assert of_first(readings) == (*REGISTERED[:5], None)
    assert counted(readings, 175) == {"not_supported": 8}


def test_a_driver_with_the_first_function_alone_has_no_health(scenario_table, open_source):
    scenario_table(registered(*REGISTERED, faults=[CallFault(SECOND, status=13)]))
    readings = open_source(*FABRIC).read()
    assert of_first(readings) == (*REGISTERED[:4], None, None)
    assert counted(readings, 174) == {"not_supported": 8}


def test_a_driver_without_any_of_the_functions_has_none_of_the_fields(scenario_table, open_source):
    scenario_table(registered(*REGISTERED, faults=[CallFault(name, status=13) for name in (SECOND, FIRST)]))
    readings = open_source(*FABRIC, 150).read()
    assert of_first(readings) == (None,) * 6
    assert {field: counted(readings, field) for field in FABRIC} == {field: {"not_supported": 8} for field in FABRIC}
    assert None not in column(readings, 150)


def test_a_failure_on_one_gpu_costs_the_fields_of_that_gpu_only(scenario_table, open_source):
    scenario = registered(*REGISTERED)
    fault = CallFault(SECOND, status=4, device=scenario.document.devices[2].uuid)
    scenario_table(registered(*REGISTERED, faults=[fault]))
    readings = open_source(*FABRIC, 150).read()
    assert [index for index, value in enumerate(column(readings, 173)) if value is None] == [2]
    assert counted(readings, 173) == {"no_permission": 1}
    assert None not in column(readings, 150)
