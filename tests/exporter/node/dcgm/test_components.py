"""The dcgm source over the fake library: fields of NVSwitches and their NVLinks."""

import pytest

from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.devices.entities.component import Component
from tests.exporter.node.dcgm.component_fixture import (
    CRC_ERRORS,
    FIRMWARE,
    OF_SWITCH_LINKS,
    OF_SWITCHES,
    SXID,
    TEMPERATURE,
    TX,
    VERSIONS,
    of_components,
    switch_spec,
    switched,
)
from tests.exporter.node.dcgm.fixture import document, gpu_spec, rejected, samples_of_gpu, wanted

LISTING = "dcgmGetEntityGroupEntities"


def switch(number):
    return Component("switch", number)


def link(number, owner):
    return Component("switch_link", number, owner)


def test_each_switch_has_values_of_its_own(engine_of):
    engine = engine_of(switched(switch_spec(0), switch_spec(3)))
    readings = engine.source(150, *OF_SWITCHES).read()
    assert of_components(readings) == {
        (switch(0), TEMPERATURE): 50,
        (switch(3), TEMPERATURE): 53,
        (switch(0), TX): 10**6,
        (switch(3), TX): 10**6 + 3,
    }
    assert samples_of_gpu(readings) == {150: 40}
    assert (rejected(readings), readings.problems, readings.down) == ({}, (), ())


@pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)
@pytest.mark.parametrize("version", ["4.2.3", "4.6.0"])
def test_each_link_of_a_switch_that_is_not_disabled_has_values_of_its_own(engine_of, version):
    gpu = gpu_spec(0, nvlinks=[{"number": 0}])
    switches = [switch_spec(0, "up", "disabled", "down"), switch_spec(1, "up")]
    engine = engine_of(document(gpu, switches=switches, versions={"dcgm": version}))
    readings = engine.source(150, CRC_ERRORS).read()
    assert of_components(readings) == {
        (link(0, 0), CRC_ERRORS): 0,
        (link(2, 0), CRC_ERRORS): 2,
        (link(0, 1), CRC_ERRORS): 0,
    }
    assert (readings.links, rejected(readings)) == ((), {})


@pytest.mark.parametrize("engine_of", ["libdcgm.so.3"], indirect=True)
def test_before_dcgm_4_the_links_of_switches_are_not_listed_and_nothing_is_wrong(engine_of):
    engine = engine_of(switched(switch_spec(0, "up"), versions={"dcgm": "3.3.9"}))
    readings = engine.source(150, TEMPERATURE, CRC_ERRORS).read()
    assert of_components(readings) == {(switch(0), TEMPERATURE): 50}
    assert readings.problems == ()


@pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)
def test_readings_of_components_equal_those_of_the_simulated_source(engine_of):
    stale = {"event": "samples", "at": 20.0, "devices": ["nvswitch0"], "fields": [str(TX)], "sentinel": "blank"}
    engine = engine_of(switched(switch_spec(1, "up", "disabled"), switch_spec(0, "down"), events=[stale]))
    fields = (150, *OF_SWITCHES, *OF_SWITCH_LINKS, SXID, FIRMWARE, 864)
    source = engine.source(*fields)
    for t in (0.0, 1.0, 30.0):
        engine.at(t)
        real, simulated = source.read(), engine.simulated(engine.config(*fields))
        assert of_components(real) == of_components(simulated)
        assert set(real.components) == set(simulated.components)
        assert rejected(real) == rejected(simulated)
    assert rejected(real) == {(TX, "blank"): 1, (864, "not_supported"): 2, (FIRMWARE, "not_supported"): 2}


@pytest.mark.parametrize("remote", [None], ids=["embedded"])
def test_an_embedded_engine_reads_switches_also_without_any_gpu(engine_of, remote):
    engine = engine_of(switched(switch_spec(0), gpus=0))
    readings = engine.source(150, TEMPERATURE, remote=remote).read()
    assert (readings.inventory, of_components(readings)) == ((), {(switch(0), TEMPERATURE): 50})


class Counting(DcgmLibrary):
    """libdcgm that counts how often components are listed."""

    def __init__(self, path):
        self.calls = []
        super().__init__(path)

    def status(self, function, *arguments):
        self.calls.append(function)
        return super().status(function, *arguments)


def test_components_are_listed_only_where_a_field_of_them_is_wanted(engine_of):
    engine = engine_of(switched(switch_spec(0, "up")))
    libraries = []
    source = engine.source(150, load=lambda path: libraries.append(Counting(path)) or libraries[-1])
    assert source.read().components == ()
    assert not {LISTING, "dcgmGetNvLinkLinkStatus"} & set(libraries[0].calls)


def test_components_are_the_same_after_a_restart_of_the_engine(engine_of):
    engine = engine_of(switched(switch_spec(0), events=[{"event": "restart", "at": 10.0}]))
    source = engine.source(150, TEMPERATURE)
    before = of_components(source.read())
    engine.at(10.0)
    assert of_components(source.read()) == before == {(switch(0), TEMPERATURE): 50}


@pytest.mark.parametrize("status", [-6, -33])
def test_an_engine_without_the_module_for_switches_has_none_and_nothing_is_wrong(engine_of, status):
    fault = {"event": "call", "function": LISTING, "status": status}
    readings = engine_of(switched(switch_spec(0), events=[fault])).source(150, TEMPERATURE).read()
    assert (readings.components, readings.component_batches, readings.problems) == ((), (), ())
    assert samples_of_gpu(readings) == {150: 40}


def test_switches_that_the_engine_lists_later_are_read_then_and_other_watches_remain(engine_of):
    fault = {"event": "call", "function": LISTING, "status": -33, "at": 0.0, "for": 10.0}
    engine = engine_of(switched(switch_spec(0), events=[fault]))
    libraries = []
    source = engine.source(150, TEMPERATURE, load=lambda path: libraries.append(Counting(path)) or libraries[-1])
    assert of_components(source.read()) == {}
    engine.at(11.0)
    assert of_components(source.read()) == {(switch(0), TEMPERATURE): 50}
    assert libraries[0].calls.count("dcgmWatchFields") == 2
    assert "dcgmUnwatchFields" not in libraries[0].calls


def test_components_come_and_go_with_the_wanted_fields_and_other_watches_remain(engine_of):
    engine = engine_of(switched(switch_spec(0)))
    libraries = []
    source = engine.source(150, load=lambda path: libraries.append(Counting(path)) or libraries[-1])
    assert source.read().components == ()
    source.want(wanted(150, TEMPERATURE))
    assert of_components(source.read()) == {(switch(0), TEMPERATURE): 50}
    source.want(wanted(150))
    readings = source.read()
    assert (readings.components, readings.component_batches) == ((), ())
    assert samples_of_gpu(readings) == {150: 40}
    assert libraries[0].calls.count("dcgmWatchFields") == 2


def test_an_sxid_is_exposed_once_it_came_and_its_absence_is_not_counted(engine_of):
    later = switch_spec(1)
    later["fields"][str(SXID)] = 12028
    engine = engine_of(switched(switch_spec(0), later))
    readings = engine.source(150, SXID).read()
    assert of_components(readings) == {(switch(1), SXID): 12028}
    assert rejected(readings) == {}


def test_a_field_that_the_engine_does_not_know_costs_only_itself(engine_of):
    engine = engine_of(switched(switch_spec(0), switch_spec(1), versions={"dcgm": "4.2.3"}))
    readings = engine.source(150, TEMPERATURE, FIRMWARE).read()
    assert of_components(readings).keys() == {(switch(0), TEMPERATURE), (switch(1), TEMPERATURE)}
    assert rejected(readings) == {(FIRMWARE, "not_supported"): 2}


@pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)
def test_two_hundred_and_fifty_six_links_are_read(engine_of):
    engine = engine_of(switched(*(switch_spec(number, *["up"] * 64) for number in range(4)), versions=VERSIONS))
    assert len(of_components(engine.source(*OF_SWITCH_LINKS).read())) == 4 * 64 * 2
