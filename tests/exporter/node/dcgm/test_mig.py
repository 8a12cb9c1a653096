"""MIG devices of a DCGM engine: what is read once per GPU, and repartitioning."""

import pytest

from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    rejected,
    samples,
    uuid_of,
)
from tests.exporter.node.dcgm.source_parts import mig_gpu_spec


def test_of_a_mig_enabled_gpu_temperature_is_read_once_and_memory_per_instance(engine_of):
    engine = engine_of(document(mig_gpu_spec(instance_spec(1), instance_spec(2)), gpu_spec(1)))
    exposed = samples(engine.settled(engine.source(150, 252, 1004, 1005)))
    assert exposed == {
        (uuid_of(0), -1, -1, 150): 40,
        (uuid_of(0), 1, -1, 252): 101,
        (uuid_of(0), 1, -1, 1004): 0.5,
        (uuid_of(0), 1, -1, 1005): 0.125,
        (uuid_of(0), 2, -1, 252): 102,
        (uuid_of(0), 2, -1, 1004): 0.5,
        (uuid_of(0), 2, -1, 1005): 0.125,
        (uuid_of(1), -1, -1, 150): 41,
        (uuid_of(1), -1, -1, 252): 1000,
        (uuid_of(1), -1, -1, 1004): 0.25,
    }


def test_compute_instances_of_one_gpu_instance_have_their_own_activity_and_one_framebuffer(engine_of):
    engine = engine_of(document(mig_gpu_spec(instance_spec(1, 0, 1, profile="2g.20gb"))))
    readings = engine.settled(engine.source(252, 1004, 1005))
    assert [(device.gi, device.ci, device.mig_uuids) for device in readings.inventory] == [
        (-1, -1, ()),
        (1, -1, ("MIG-1-0", "MIG-1-1")),
        (1, 0, ("MIG-1-0",)),
        (1, 1, ("MIG-1-1",)),
    ]
    assert {key[1:]: value for key, value in samples(readings).items()} == {
        (1, -1, 252): 101,
        (1, -1, 1005): 0.125,
        (1, 0, 1004): 0.5,
        (1, 1, 1004): 0.5,
    }


def test_after_a_mig_reconfiguration_the_same_collection_has_the_new_instances_though_ids_repeat(engine_of):
    change = {
        "event": "mig",
        "device": uuid_of(0),
        "at": 10.0,
        "instances": [instance_spec(5, profile="3g.40gb", tag="new-")],
    }
    engine = engine_of(document(mig_gpu_spec(instance_spec(1), instance_spec(2)), events=[change]))
    source = engine.source(150, 252)
    assert {key[1] for key in samples(source.read())} == {-1, 1, 2}
    engine.at(10.0)
    readings = source.read()
    assert {key[1:]: value for key, value in samples(readings).items()} == {(-1, -1, 150): 40, (5, -1, 252): 105}
    assert readings.inventory[1].profile == "3g.40gb"
    assert readings.inventory[1].mig_uuids == ("MIG-new-5-0",)


def test_the_value_of_an_instance_that_was_made_again_with_the_same_ids_is_stale_until_it_is_watched_again(engine_of):
    again = instance_spec(1, tensor=0.75, tag="new-")
    change = {"event": "mig", "device": uuid_of(0), "at": 10.0, "instances": [again]}
    engine = engine_of(document(mig_gpu_spec(instance_spec(1)), events=[change]))
    source = engine.source(1004)
    for t in range(10):
        engine.at(t)
        source.read()
    engine.at(16.0)
    stale = source.read()
    assert samples(stale) == {}
    assert rejected(stale) == {(1004, "stale"): 1}
    engine.at(17.0)
    readings = engine.settled(source)
    assert samples(readings) == {(uuid_of(0), 1, -1, 1004): 0.75}
    assert readings.inventory[1].mig_uuids == ("MIG-new-1-0",)


@pytest.mark.slow
def test_after_a_hundred_reconfigurations_there_are_still_free_groups(engine_of):
    change = [
        {
            "event": "mig",
            "device": uuid_of(0),
            "at": float(t),
            "for": 1.0,
            "instances": [instance_spec(t % 7, tag=f"{t}-")],
        }
        for t in range(1, 101)
    ]
    engine = engine_of(document(mig_gpu_spec(instance_spec(1)), events=change))
    source = engine.source(150, 230, 252, 1004)
    for t in range(1, 101):
        engine.at(float(t))
        assert (uuid_of(0), t % 7, -1, 252) in samples(source.read())
