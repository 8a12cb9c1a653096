"""Fields whose field value a driver does not have are read with the older call, where that exists."""

import msgspec
import pynvml
import pytest

from exporter.node.nvml.calls.older_calls import OLDER_CALLS
from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted, samples

FIELD_VALUES = "nvmlDeviceGetFieldValues"
FIELDS = tuple(field for call in OLDER_CALLS for field in call.fields)
FLAGS = {392: 1, 395: 0, 396: 1}
VALUES = {field: FLAGS.get(field, field % 100) for field in FIELDS}


def with_values(*faults):
    """The scenario `whole`, whose GPUs have a value of each of these fields, with these faults."""
    document = load("whole").document
    own = {str(field): value for field, value in VALUES.items()}
    devices = tuple(msgspec.structs.replace(gpu, use=(), fields={**gpu.fields, **own}) for gpu in document.devices)
    return Scenario("values", msgspec.structs.replace(document, devices=devices, events=faults))


def first(readings):
    uuid = readings.inventory[0].uuid
    return {key[3]: value for key, value in samples(readings).items() if key[0] == uuid}


@pytest.fixture
def calls(monkeypatch):
    """Counts how often each function of the library is called."""
    counts: dict[str, int] = {}
    original = pynvml._nvmlGetFunctionPointer

    def counted_pointer(name):
        counts[name] = counts.get(name, 0) + 1
        return original(name)

    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer", counted_pointer)
    return counts


def test_every_older_call_gives_what_the_field_value_would(scenario_table, open_source):
    scenario_table(with_values(CallFault(FIELD_VALUES, status=13)))
    readings = open_source(*FIELDS).read()
    assert first(readings) == VALUES
    assert readings.rejections == ()


@pytest.mark.parametrize("field", FIELDS)
def test_only_the_field_that_the_driver_does_not_know_is_read_with_a_call(scenario_table, open_source, calls, field):
    scenario_table(with_values(CallFault(FIELD_VALUES, status=2, field=str(field))))
    readings = open_source(*FIELDS).read()
    assert first(readings) == VALUES
    assert readings.rejections == ()
    older = {name: count for name, count in calls.items() if name in OLDER_FUNCTIONS and count}
    assert len(older) == 1
    assert set(older.values()) <= {8}


OLDER_FUNCTIONS = {
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetPcieReplayCounter",
    "nvmlDeviceGetViolationStatus",
    "nvmlDeviceGetTotalEccErrors",
    "nvmlDeviceGetRetiredPages",
    "nvmlDeviceGetRetiredPagesPendingStatus",
    "nvmlDeviceGetRemappedRows",
}


def test_where_the_driver_has_the_field_values_no_older_call_is_made(scenario_table, open_source, calls):
    scenario_table(with_values())
    assert first(open_source(*FIELDS).read()) == VALUES
    assert calls.keys() & OLDER_FUNCTIONS == set()


@pytest.mark.parametrize("code", [4, 999])
def test_a_field_value_that_fails_otherwise_is_not_read_with_a_call(scenario_table, open_source, calls, code):
    scenario_table(with_values(CallFault(FIELD_VALUES, status=code, field="202")))
    readings = open_source(*FIELDS).read()
    assert column(readings, 202) == [None] * 8
    assert calls.keys() & OLDER_FUNCTIONS == set()


@pytest.mark.parametrize("code", [3, 13])
def test_a_call_that_is_not_supported_either_is_made_once(scenario_table, open_source, calls, code):
    scenario_table(
        with_values(
            CallFault(FIELD_VALUES, status=2, field="202"), CallFault("nvmlDeviceGetPcieReplayCounter", status=code)
        )
    )
    source = open_source(202, 156)
    for _ in range(3):
        readings = source.read()
        assert column(readings, 202) == [None] * 8
        assert counted(readings, 202) == {"not_supported": 8}
        assert None not in column(readings, 156)
    assert calls["nvmlDeviceGetPcieReplayCounter"] == 8


def test_a_call_that_fails_for_a_moment_is_made_again(scenario_table, open_source):
    fault = CallFault(FIELD_VALUES, status=2, field="202")
    table = scenario_table(with_values(fault, CallFault("nvmlDeviceGetPcieReplayCounter", status=999)))
    source = open_source(202)
    assert counted(source.read(), 202) == {"blank": 8}
    table.scenario = with_values(fault)
    table.tick(1)
    assert column(source.read(), 202) == [VALUES[202]] * 8


def test_one_gpu_without_the_field_value_and_the_call_costs_that_field_of_that_gpu(scenario_table, open_source):
    uuid = with_values().document.devices[3].uuid
    scenario_table(
        with_values(
            CallFault(FIELD_VALUES, status=2, field="393", device=uuid),
            CallFault("nvmlDeviceGetRemappedRows", status=3, device=uuid),
        )
    )
    readings = open_source(393, 394, 156).read()
    assert [index for index, value in enumerate(column(readings, 393)) if value is None] == [3]
    assert counted(readings, 393) == {"not_supported": 1}
    assert None not in column(readings, 394) + column(readings, 156)
