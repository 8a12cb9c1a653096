"""Every call about components with every status: only components are lost, and they come back.

A status after which nothing else can be asked either costs the source, as from any other call.
"""

import pytest

from exporter.node.dcgm.native.status_scope import OF_A_GPU, OF_THE_CONNECTION, OF_THE_ENGINE
from exporter.source import SourceError
from tests.exporter.node.dcgm.component_fixture import (
    CPU_POWER,
    CRC_ERRORS,
    TEMPERATURE,
    TX,
    UTILIZATION,
    cpu_spec,
    of_components,
    switch_spec,
    switched,
)
from tests.exporter.node.dcgm.fixture import EngineFixture, samples
from tests.exporter.node.dcgm.test_statuses import FAULT_AT, FINAL, FINAL_OF_FIELD_GROUPS, LATER, RESTARTED, STATUSES

pytestmark = pytest.mark.slow  # there are some hundreds of them

LISTS = {
    "dcgmGetEntityGroupEntities": ({"switch"}, "switches_unreadable"),
    "dcgmGetCpuHierarchy_v2": ({"cpu", "core"}, "cpus_unreadable"),
}
"""Per call, the scopes of the components that it lists, and the reason while it fails."""
NONE_HERE = frozenset({-6, -20, -33})
"""The engine has no components of this kind: no problem."""
CONTAINED = [status for status in STATUSES if status not in OF_THE_CONNECTION]
OF_AN_OLDER_LIBRARY = {"dcgmGetCpuHierarchy_v2": frozenset({-12, -20})}
"""Then the call before it is made, which lists the same without serial numbers."""
FIELDS = (150, TEMPERATURE, TX, CRC_ERRORS, CPU_POWER, UTILIZATION)
ALL_SCOPES = {"switch", "switch_link", "cpu", "core"}


@pytest.fixture
def engine_with(tmp_path):
    """Makes an engine of two GPUs and two NVSwitches in which a call fails for a minute, and restarts in the end."""
    engines = []

    def make(function, status, **about):
        fault = {"event": "call", "function": function, "status": status, "at": FAULT_AT, "for": 60.0, **about}
        events = [fault, {"event": "restart", "at": RESTARTED}]
        switches = switch_spec(0, "up"), switch_spec(1)
        engines.append(EngineFixture(tmp_path, switched(*switches, cpus=[cpu_spec(0, 0, 1)], events=events)))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def read_at(engine, source, t):
    engine.at(t)
    return source.read()


def assert_gpus_are_whole(readings):
    assert len(samples(readings)) == 2
    assert readings.down == ()


def assert_comes_back(engine, source, before, *, again):
    if again:
        read_at(engine, source, LATER)
        assert of_components(read_at(engine, source, LATER + 2.0)) == before
    read_at(engine, source, RESTARTED + 1.0)
    assert of_components(read_at(engine, source, RESTARTED + 3.0)) == before


@pytest.mark.parametrize("function", LISTS)
@pytest.mark.parametrize("status", STATUSES)
def test_without_a_list_of_them_everything_else_is_read(engine_with, function, status):
    engine = engine_with(function, status)
    source = engine.source(*FIELDS)
    before = of_components(source.read())
    engine.at(FAULT_AT)
    if status in OF_THE_CONNECTION:
        with pytest.raises(SourceError):
            source.read()
    else:
        readings = source.read()
        assert_gpus_are_whole(readings)
        older = status in OF_AN_OLDER_LIBRARY.get(function, ())
        scopes, reason = LISTS[function]
        left = ALL_SCOPES if older else ALL_SCOPES - scopes
        assert {component.scope for component, _ in of_components(readings)} == left
        assert [reason for reason, _ in readings.problems] == ([] if older or status in NONE_HERE else [reason])
    assert_comes_back(engine, source, before, again=True)


@pytest.mark.parametrize("function", ["dcgmGroupAddEntity", "dcgmWatchFields", "dcgmEntitiesGetLatestValues"])
@pytest.mark.parametrize(("address", "scope"), [("nvswitch1", "switch"), ("cpu0/core1", "core")])
@pytest.mark.parametrize("status", CONTAINED)
def test_a_call_about_one_component_costs_that_component(engine_with, function, address, scope, status):
    engine = engine_with(function, status, device=address)
    before = of_components(engine.source(*FIELDS).read())
    source = engine.source(*FIELDS)
    read_at(engine, source, FAULT_AT)
    readings = read_at(engine, source, FAULT_AT + 2.0)
    assert_gpus_are_whole(readings)
    left = {key: value for key, value in before.items() if (key[0].scope, key[0].number) != (scope, 1)}
    if status in OF_THE_ENGINE:  # the engine says that it would reject every other one of them too
        left = {key: value for key, value in left.items() if key[0].scope != scope}
    assert of_components(readings) == left
    assert readings.problems != ()
    assert_comes_back(engine, source, before, again=status not in FINAL)


@pytest.mark.parametrize("function", ["dcgmFieldGroupCreate", "dcgmWatchFields", "dcgmEntitiesGetLatestValues"])
@pytest.mark.parametrize("status", CONTAINED)
def test_a_call_about_one_field_of_switches_costs_at_most_the_fields_of_switches(engine_with, function, status):
    engine = engine_with(function, status, field=str(TX))
    before = of_components(engine.source(*FIELDS).read())
    source = engine.source(*FIELDS)
    read_at(engine, source, FAULT_AT)
    readings = read_at(engine, source, FAULT_AT + 2.0)
    assert_gpus_are_whole(readings)
    # A status that is said of a GPU or of the engine is not looked into field by field.
    whole = status in OF_THE_ENGINE or (status in OF_A_GPU and function != "dcgmFieldGroupCreate")
    of_switches = {TEMPERATURE, TX} if whole else {TX}
    assert of_components(readings) == {key: value for key, value in before.items() if key[1] not in of_switches}
    assert readings.problems != ()
    final = FINAL_OF_FIELD_GROUPS if function == "dcgmFieldGroupCreate" else FINAL
    assert_comes_back(engine, source, before, again=status not in final)


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_of_one_value_costs_that_value(engine_of, status):
    fault = {"event": "samples", "at": FAULT_AT, "for": 60.0, "status": status, "fields": [str(TX)]}
    engine = engine_of(switched(switch_spec(0), switch_spec(1), events=[{**fault, "devices": ["nvswitch1"]}]))
    source = engine.source(150, TEMPERATURE, TX)
    before = of_components(source.read())
    for second in range(10):
        readings = read_at(engine, source, FAULT_AT + second)
        assert_gpus_are_whole(readings)
        assert len(of_components(readings)) == len(before) - 1
    assert of_components(read_at(engine, source, LATER)) == before
