"""The dcgm source over the fake library: which components --switch-devices and --cpu-devices select."""

import pytest

from exporter.node.devices.entities.component_selection import ComponentSelections
from exporter.node.devices.entities.selection import parse_selection
from tests.exporter.node.dcgm.component_fixture import (
    CPU_POWER,
    CRC_ERRORS,
    TEMPERATURE,
    UTILIZATION,
    cpu_spec,
    of_components,
    switch_spec,
    switched,
)
from tests.exporter.node.dcgm.fixture import samples_of_gpu

pytestmark = pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)

FIELDS = (150, TEMPERATURE, CRC_ERRORS, CPU_POWER, UTILIZATION)
ALL = {
    *("nvswitch0", "nvswitch1", "nvswitch0/0", "nvswitch0/1", "nvswitch1/0"),
    *("cpu0", "cpu1", "cpu0/0", "cpu0/1", "cpu1/2"),
}


@pytest.fixture
def read(engine_of):
    """Reads an engine of two NVSwitches and two CPUs with these selections, and compares the simulated source."""

    def make(switches="f", cpus="f", *, fields=FIELDS, **more):
        specs = switch_spec(0, "up", "up"), switch_spec(1, "up")
        engine = engine_of(switched(*specs, cpus=[cpu_spec(0, 0, 1), cpu_spec(1, 2)], **more))
        selections = ComponentSelections(parse_selection(switches), parse_selection(cpus))
        real = engine.source(*fields, selections=selections).read()
        simulated = engine.simulated(engine.config(*fields, selections=selections))
        if not more:
            assert of_components(real) == of_components(simulated)
            assert real.problems == simulated.problems
        return real

    return make


def names(readings):
    """The exposed components by name, such as `nvswitch0/1` for a link."""
    kinds = {"switch": "nvswitch", "cpu": "cpu"}
    wholes = {component.whole for component, _ in of_components(readings)}
    assert all(scope in kinds for scope, _ in wholes)
    return {
        f"{kinds[each.whole[0]]}{each.whole[1]}" + ("" if each.owner < 0 else f"/{each.number}")
        for each, _ in of_components(readings)
    }


@pytest.mark.parametrize(
    ("switches", "cpus", "gone"),
    [
        ("f", "f", set()),
        ("g+i", "i+g", set()),
        ("g", "f", {"nvswitch0/0", "nvswitch0/1", "nvswitch1/0"}),
        ("i", "f", {"nvswitch0", "nvswitch1"}),
        ("g:1", "f", ALL - {"nvswitch1", "cpu0", "cpu1", "cpu0/0", "cpu0/1", "cpu1/2"}),
        ("g:0+i", "f", {"nvswitch1", "nvswitch1/0"}),
        ("i:1", "f", {"nvswitch0", "nvswitch1", "nvswitch0/0", "nvswitch1/0"}),
        ("f", "g:0", {"cpu1", "cpu0/0", "cpu0/1", "cpu1/2"}),
        ("f", "g:0-1+i:1-2", {"cpu0/0"}),
    ],
)
def test_what_is_selected_is_read_and_nothing_else(read, switches, cpus, gone):
    readings = read(switches, cpus)
    assert names(readings) == ALL - gone
    assert readings.problems == ()
    assert samples_of_gpu(readings) == {150: 40}


@pytest.mark.parametrize(
    ("switches", "cpus", "left", "message"),
    [
        ("g:0,7+i:1", "f", {"nvswitch0", "nvswitch0/1"}, "not there: NVSwitch 7 of --switch-devices"),
        ("g:1+i:0-2", "f", {"nvswitch1", "nvswitch1/0"}, "not there: NVLink 1, 2 of --switch-devices"),
        ("g:8-9", "i:2-3", {"cpu1/2"}, "not there: NVSwitch 8, 9 of --switch-devices; core 3 of --cpu-devices"),
    ],
)
def test_a_missing_number_costs_only_itself_and_has_one_message(read, switches, cpus, left, message):
    readings = read(switches, cpus)
    cpus_left = {name for name in ALL if name.startswith("cpu")} if cpus == "f" else set()
    assert names(readings) == left | cpus_left
    assert readings.problems == (("selected_missing", message),)
    assert samples_of_gpu(readings) == {150: 40}


def test_what_is_selected_of_components_without_a_wanted_field_is_not_looked_for(read):
    readings = read("g:7", "g:7", fields=(150, CRC_ERRORS))
    assert names(readings) == set()
    assert readings.problems == ()


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (-33, "selected_missing", "not there: NVSwitch 0 of --switch-devices"),
        (
            -3,
            "switches_unreadable",
            "NVSwitches cannot be listed: dcgmGetEntityGroupEntities answered -3 (engine error)",
        ),
    ],
    ids=["a machine without them", "they cannot be listed"],
)
def test_a_number_is_missing_only_where_it_is_known_which_there_are(read, status, reason, message):
    fault = {"event": "call", "function": "dcgmGetEntityGroupEntities", "status": status}
    readings = read("g:0", fields=(150, TEMPERATURE), events=[fault])
    assert readings.problems == ((reason, message),)
    assert samples_of_gpu(readings) == {150: 40}
