"""The dcgm source over the fake library: fields of single NVLinks."""

import pytest

from exporter.node.dcgm.native import listing_layout
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.devices.entities.link import Link
from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    rejected,
    samples_of_gpu,
    uuid_of,
)

pytestmark = pytest.mark.parametrize("engine_of", ["libdcgm.so.4"], indirect=True)
"""libdcgm 3 has no fields of links."""

FLIT_ERRORS, TX_RATE, STATE, TX_BYTES, RECOVERY = 1525, 1530, 1508, 1532, 581
NEW = {"dcgm": "4.6.0"}


def link_spec(number, state="up", **values):
    fields = {str(FLIT_ERRORS): 10 + number, str(TX_RATE): 100 * number, str(STATE): 1, str(TX_BYTES): 1000 + number}
    return {"number": number, "state": state, "fields": fields | {str(int(key)): v for key, v in values.items()}}


def linked(number, *states, **more):
    links = [link_spec(each, state) for each, state in enumerate(states)]
    return gpu_spec(number, nvlinks=links, **more)


def of_links(readings):
    """Return every exposed value by (UUID of the GPU, number of the link, field)."""
    exposed = {}
    for batch in readings.link_batches:
        for field, column in zip(batch.fields, batch.columns, strict=True):
            for position, value in zip(batch.devices, column, strict=True):
                link = readings.links[position]
                key = (readings.inventory[link.gpu].uuid, link.number, field)
                assert key not in exposed
                if value is not None:
                    exposed[key] = value
    return exposed


def test_each_link_that_is_not_disabled_has_values_of_its_own(engine_of):
    engine = engine_of(document(linked(0, "up", "down", "disabled", "up"), linked(1, "up"), versions=NEW))
    readings = engine.source(150, FLIT_ERRORS, TX_RATE).read()
    assert readings.links == (Link(0, 0), Link(0, 1), Link(0, 3), Link(1, 0))
    assert of_links(readings) == {
        (uuid_of(gpu), link, field): value
        for gpu, link in ((0, 0), (0, 1), (0, 3), (1, 0))
        for field, value in ((FLIT_ERRORS, 10 + link), (TX_RATE, 100 * link))
    }
    assert samples_of_gpu(readings) == {150: 40}
    assert rejected(readings) == {}


def test_readings_of_links_equal_those_of_the_simulated_source(engine_of):
    mig = linked(1, "up", mig=True, instances=[instance_spec(1), instance_spec(2)])
    engine = engine_of(document(linked(0, "up", "disabled", "down"), mig, versions=NEW))
    fields = (150, 252, FLIT_ERRORS, TX_RATE, TX_BYTES, STATE, RECOVERY)
    source = engine.source(*fields)
    source.read()  # a profiling field has its first value one interval after its watch began
    for t in (1.0, 2.0, 30.0):
        engine.at(t)
        real, simulated = source.read(), engine.simulated(engine.config(*fields))
        assert of_links(real) == of_links(simulated)
        assert real.links == simulated.links
        assert rejected(real) == rejected(simulated) == {(RECOVERY, "not_supported"): 3}
        assert len(of_links(real)) == 3 * 4


def test_the_links_of_a_lost_gpu_have_no_values_until_it_is_back(engine_of):
    lost = {"event": "lost", "device": uuid_of(0), "at": 10.0, "for": 10.0}
    engine = engine_of(document(linked(0, "up"), linked(1, "up"), events=[lost], versions=NEW))
    source = engine.source(FLIT_ERRORS)
    both = {(uuid_of(0), 0, FLIT_ERRORS), (uuid_of(1), 0, FLIT_ERRORS)}
    for t, expected in ((0.0, both), (10.0, {(uuid_of(1), 0, FLIT_ERRORS)}), (21.0, both)):
        engine.at(t)
        assert of_links(source.read()).keys() == expected


def test_after_a_restart_of_the_engine_with_other_ids_the_links_are_those_of_the_same_gpus(engine_of):
    restart = {"event": "restart", "at": 10.0}
    engine = engine_of(document(linked(0, "up"), linked(1, "up", "up"), events=[restart], versions=NEW))
    source = engine.source(150, FLIT_ERRORS)
    before = of_links(source.read())
    engine.at(10.0)
    assert of_links(source.read()) == before
    assert len(before) == 3


class Recording(DcgmLibrary):
    """libdcgm that records how often the links are listed, and the version word of each time."""

    def __init__(self, path):
        self.versions = []
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmGetNvLinkLinkStatus":
            self.versions.append(arguments[1]._obj.version)
        return super().status(function, *arguments)


def recording(engine, *fields):
    libraries = []
    source = engine.source(*fields, load=lambda path: libraries.append(Recording(path)) or libraries[-1])
    return source, libraries


def test_links_are_listed_only_where_a_field_of_links_is_wanted_and_not_in_every_collection(engine_of):
    engine = engine_of(document(linked(0, "up"), versions=NEW))
    source, libraries = recording(engine, 150)
    assert source.read().links == ()
    assert libraries[0].versions == []
    source, libraries = recording(engine, FLIT_ERRORS)
    source.read()
    source.read()
    assert libraries[0].versions == [listing_layout.LINK_STATES[0][1]]


def test_an_older_library_lists_its_links_in_the_older_record(engine_of):
    engine = engine_of(document(linked(0, "up", "up"), versions={"dcgm": "4.5.3"}))
    source, libraries = recording(engine, STATE, FLIT_ERRORS)
    readings = source.read()
    assert of_links(readings) == {(uuid_of(0), 0, STATE): 1, (uuid_of(0), 1, STATE): 1}
    assert libraries[0].versions == [version for _, version in listing_layout.LINK_STATES]
    assert rejected(readings) == {(FLIT_ERRORS, "not_supported"): 2}, "4.5 does not know the field"


@pytest.mark.parametrize("status", [-6, -12])
def test_where_the_library_does_not_list_links_nothing_is_wrong_and_nothing_is_read(engine_of, status):
    fault = {"event": "call", "function": "dcgmGetNvLinkLinkStatus", "status": status}
    engine = engine_of(document(linked(0, "up"), events=[fault], versions=NEW))
    readings = engine.source(150, FLIT_ERRORS).read()
    assert (readings.links, readings.link_batches, readings.problems) == ((), (), ())
    assert samples_of_gpu(readings) == {150: 40}


def test_links_that_cannot_be_listed_are_a_problem_and_cost_only_their_own_fields(engine_of):
    fault = {"event": "call", "function": "dcgmGetNvLinkLinkStatus", "status": -8}
    engine = engine_of(document(linked(0, "up"), events=[fault], versions=NEW))
    readings = engine.source(150, FLIT_ERRORS).read()
    assert [reason for reason, _ in readings.problems] == ["links_unreadable"]
    assert samples_of_gpu(readings) == {150: 40}
    assert of_links(readings) == {}


def test_a_field_that_no_link_has_costs_only_itself(engine_of):
    blank = {"event": "samples", "fields": [str(TX_RATE)], "sentinel": "not_supported"}
    engine = engine_of(document(linked(0, "up", "up"), events=[blank], versions=NEW))
    readings = engine.source(FLIT_ERRORS, TX_RATE).read()
    assert {key[2] for key in of_links(readings)} == {FLIT_ERRORS}
    assert rejected(readings) == {(TX_RATE, "not_supported"): 2}


def test_gpus_without_links_have_none_and_their_other_values_are_there(engine_of):
    engine = engine_of(document(gpu_spec(0), versions=NEW))
    readings = engine.source(150, FLIT_ERRORS).read()
    assert (readings.links, readings.link_batches) == ((), ())
    assert samples_of_gpu(readings) == {150: 40}


def test_two_hundred_links_are_read_in_as_many_calls_as_the_limits_require(engine_of):
    engine = engine_of(document(*(linked(number, *["up"] * 18) for number in range(12)), versions=NEW))
    source = engine.source(FLIT_ERRORS, TX_RATE, TX_BYTES)
    source.read()
    engine.at(1.0)
    exposed = of_links(source.read())
    assert len(exposed) == 12 * 18 * 3
