"""The last XID of each GPU, as the dcgm source exposes it."""

import pytest

from exporter.node.devices.fields.validity import EVENT_SECONDS
from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    rejected,
    samples,
    samples_of_gpu,
    uuid_of,
)
from tests.exporter.node.dcgm.source_parts import mig_gpu_spec


@pytest.mark.parametrize("where", ["", "/1", "/1/0"])
def test_an_xid_of_any_entity_is_exposed_on_its_gpu_until_it_is_too_old(engine_of, where):
    event = {"event": "xid", "device": uuid_of(0) + where, "at": 10.0, "xid": 63}
    engine = engine_of(document(mig_gpu_spec(instance_spec(1), instance_spec(2)), gpu_spec(1), events=[event]))
    source = engine.source(150, 230)
    readings = source.read()
    first, second = (uuid_of(0), -1, -1, 230), (uuid_of(1), -1, -1, 230)
    assert {key: value for key, value in samples(readings).items() if key[3] == 230} == {first: 0, second: 0}
    assert rejected(readings) == {}, "a field without an event is not rejected"
    engine.at(11.0)
    assert {key: value for key, value in samples(source.read()).items() if key[3] == 230} == {first: 63, second: 0}
    engine.at(11.0 + EVENT_SECONDS)
    readings = source.read()
    assert {key for key in samples(readings) if key[3] == 230} == {second}, "it is known that there was one"
    assert rejected(readings) == {}


def test_of_several_xids_of_a_gpu_the_last_is_exposed_and_a_blank_hides_none(engine_of):
    events = [
        {"event": "xid", "device": f"{uuid_of(0)}/2", "at": 10.0, "xid": 63},
        {"event": "xid", "device": f"{uuid_of(0)}/1/0", "at": 12.0, "xid": 94},
        {"event": "samples", "at": 14.0, "fields": ["230"], "devices": [f"{uuid_of(0)}/1/0"], "sentinel": "blank"},
    ]
    engine = engine_of(document(mig_gpu_spec(instance_spec(1), instance_spec(2)), events=events))
    source = engine.source(150, 230)
    for t, xid in ((11.0, 63), (13.0, 94), (15.0, 63)):
        engine.at(t)
        assert samples_of_gpu(source.read())[230] == xid


@pytest.mark.parametrize(
    "fault", [{"sentinel": "blank"}, {"sentinel": "not_supported"}, {"status": -6}, {"status": -16}, {"status": -18}]
)
def test_only_the_statement_that_no_event_came_is_0_and_only_where_every_entity_makes_it(engine_of, fault):
    events = [{"event": "samples", "at": 5.0, "fields": ["230"], "devices": [f"{uuid_of(0)}/1/0"], **fault}]
    engine = engine_of(document(mig_gpu_spec(instance_spec(1)), events=events))
    source = engine.source(150, 230)
    assert samples_of_gpu(source.read())[230] == 0
    engine.at(6.0)
    assert 230 not in samples_of_gpu(source.read())
