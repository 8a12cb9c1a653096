"""GPUs of a DCGM engine that are lost, unsupported or back: the others keep every value."""

import pytest

from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    samples,
    samples_of_gpu,
    uuid_of,
)
from tests.exporter.node.dcgm.source_parts import CountingLibrary, DiscoveryTimes, lost, mig_gpu_spec


@pytest.mark.parametrize("seen", ["status", "blank", "absent"])
def test_a_lost_gpu_is_down_without_values_until_it_is_back(engine_of, seen):
    lost = {"event": "lost", "device": uuid_of(1), "at": 10.0, "for": 10.0, "as": seen}
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[lost]))
    source = engine.source(150, 155)
    assert source.read().down == ()
    engine.at(10.0)
    readings = source.read()
    assert (readings.down, readings.problems) == ((uuid_of(1),), ())
    assert {key[0] for key in samples(readings)} == {uuid_of(0)}
    assert {device.uuid for device in readings.inventory} == {uuid_of(0), uuid_of(1)}
    engine.at(21.0)
    readings = source.read()
    assert readings.down == ()
    assert {key[0] for key in samples(readings)} == {uuid_of(0), uuid_of(1)}


@pytest.mark.parametrize("state", ["unsupported", "inaccessible", "lost", "disabled", "detached"])
def test_a_gpu_in_a_state_without_values_is_down_and_the_others_are_read(engine_of, state):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[lost(1, 10.0, state=state, **{"for": 15.0})]))
    source = engine.source(1, 150, 1004)
    source.read()
    engine.at(10.0)
    readings = engine.settled(source)
    assert (readings.down, readings.problems) == ((uuid_of(1),), ())
    assert {key[0] for key in samples(readings)} == {uuid_of(0)}
    assert len(samples(readings)) == 3
    engine.at(30.0)
    readings = engine.settled(source)
    assert (readings.down, len(samples(readings))) == ((), 6)


def test_an_unsupported_gpu_is_down_from_the_first_read_on(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[lost(1, 0.0, state="unsupported")]))
    readings = engine.settled(engine.source(150, 1004))
    assert readings.down == (uuid_of(1),)
    assert samples(readings) == {(uuid_of(0), -1, -1, 150): 40, (uuid_of(0), -1, -1, 1004): 0.25}


def test_rejected_devices_leave_few_groups_however_many_they_are(engine_of):
    """An engine has 61 entity groups, so not each of the accepted devices can have its own."""
    specs = [mig_gpu_spec(*(instance_spec(gi) for gi in range(7)), number=number) for number in range(10)]
    addresses = [f"{uuid_of(number)}/{gi}" for number in range(10) for gi in (0, 2, 4)]
    fault = {"event": "call", "function": "dcgmWatchFields", "status": -3}
    engine = engine_of(document(*specs, events=[{**fault, "device": address} for address in addresses]))
    libraries = []
    source = engine.source(252, 1004, load=lambda path: libraries.append(CountingLibrary(path)) or libraries[-1])
    values = samples(engine.settled(source))
    assert {key[1] for key in values} == {1, 3, 5, 6}
    assert len(values) == 10 * 4 * 2
    calls = libraries[0].calls
    assert calls["dcgmGroupCreate"] - calls["dcgmGroupDestroy"] <= 4


def test_gpus_are_read_even_if_the_hierarchy_cannot_be(engine_of):
    fault = {"event": "call", "function": "dcgmGetGpuInstanceHierarchy", "status": -29}
    engine = engine_of(document(gpu_spec(0), events=[fault]))
    readings = engine.source(150).read()
    assert samples_of_gpu(readings) == {150: 40}
    assert readings.problems[0][0] == "hierarchy_unreadable"


def test_a_gpu_without_a_uuid_is_a_problem_and_is_discovered_again(engine_of):
    blank = {"event": "samples", "for": 3.0, "sentinel": "blank", "fields": ["54"], "devices": [uuid_of(1)]}
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[blank]))
    source = engine.source(150)
    readings = source.read()
    assert [problem for problem, _ in readings.problems] == ["device_unidentified"]
    assert {device.uuid for device in readings.inventory} == {uuid_of(0)}
    engine.at(6.0)
    readings = source.read()
    assert readings.problems == ()
    assert len(samples(readings)) == 2


def test_a_lost_gpu_which_has_no_uuid_any_more_causes_no_discovery_after_the_first(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[lost(1, 10.0)]))
    libraries = []
    source = engine.source(150, load=lambda path: libraries.append(DiscoveryTimes(path, engine)) or libraries[-1])
    for second in range(60):
        engine.at(float(second))
        source.read()
    assert libraries[0].times == [0, 10]


def test_when_a_gpu_is_lost_and_comes_back_the_others_keep_every_value(engine_of):
    """A watch that is made anew has no profiling values for an interval."""
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), gpu_spec(2), events=[lost(0, 10.0, **{"for": 10.0})]))
    source = engine.source(150, 1004, 230)
    before = samples(engine.settled(source))
    others = {key: value for key, value in before.items() if key[0] != uuid_of(0)}
    for second in range(2, 30):
        engine.at(float(second))
        values = samples(source.read())
        assert others.items() <= values.items()
    assert values == before


def test_when_one_gpu_has_other_mig_devices_the_others_keep_every_value(engine_of):
    changes = [
        {"event": "mig", "device": uuid_of(0), "at": at, "instances": [instance_spec(gi, tag=f"{at}-")]}
        for at, gi in ((5.0, 2), (9.0, 1), (13.0, 2), (17.0, 1))
    ]
    gpus = (mig_gpu_spec(instance_spec(1)), mig_gpu_spec(instance_spec(1), number=1), gpu_spec(2))
    engine = engine_of(document(*gpus, events=changes))
    source = engine.source(150, 252, 1004)
    before = samples(engine.settled(source))
    others = {key: value for key, value in before.items() if key[0] != uuid_of(0)}
    assert len(others) == 3 + 3
    for second in range(2, 25):
        engine.at(float(second))
        values = samples(source.read())
        assert others.items() <= values.items()
    assert values.keys() == before.keys()


@pytest.mark.slow
def test_when_gpus_are_lost_and_come_back_many_times_there_are_still_free_groups(engine_of):
    losses = [lost(number, 10.0 * at + number, **{"for": 5.0}) for at in range(40) for number in range(3)]
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), gpu_spec(2), events=losses))
    libraries = []
    source = engine.source(150, 1004, load=lambda path: libraries.append(CountingLibrary(path)) or libraries[-1])
    for second in range(420):
        engine.at(float(second))
        readings = source.read()
    assert len(samples(readings)) == 6
    calls = libraries[0].calls
    assert calls["dcgmGroupCreate"] - calls["dcgmGroupDestroy"] <= 4


def test_a_gpu_that_is_lost_while_the_engine_restarts_is_still_known(engine_of):
    events = [lost(1, 10.0), {"event": "restart", "at": 20.0}]
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=events))
    source = engine.source(150)
    for t in (0.0, 10.0, 25.0):
        engine.at(t)
        readings = source.read()
    assert (readings.down, readings.problems) == ((uuid_of(1),), ())


def test_a_gpu_that_was_lost_before_the_first_read_cannot_be_identified(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[lost(1, 0.0)]))
    readings = engine.source(150).read()
    assert [reason for reason, _ in readings.problems] == ["device_unidentified"]
    assert ({device.uuid for device in readings.inventory}, readings.down) == ({uuid_of(0)}, ())
