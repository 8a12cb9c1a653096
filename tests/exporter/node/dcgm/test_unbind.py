"""The driver is unbound from a GPU under an engine that lets go of GPUs by itself: from DCGM 4.5 on."""

import pytest

from tests.exporter.node.dcgm.fixture import AT_ITS_SOCKET, document, gpu_spec, samples_of_gpu, uuid_of

FIELDS = (150, 155, 156, 1004)


def unbound(at, for_):
    return {"event": "lost", "device": uuid_of(1), "at": at, "for": for_, "state": "detached"}


@pytest.fixture
def engine(engine_of):
    def start(*events):
        gpus = [gpu_spec(number) for number in range(3)]
        return engine_of(document(*gpus, events=events, versions={"dcgm": "4.6.0"}))

    return start


@pytest.mark.parametrize("remote", [None, "host engine"])
def test_a_gpu_that_is_bound_again_between_two_reads_costs_no_gpu_its_values_for_long(engine, remote):
    made = engine(unbound(10.2, 0.5))
    source = made.source(*FIELDS) if remote else made.source(*FIELDS, remote=None)
    made.at(9.0)
    made.settled(source)
    missing = []
    for t in range(11, 31):
        made.at(float(t))
        readings = source.read()
        missing += [t for gpu in range(3) if set(samples_of_gpu(readings, gpu)) != set(FIELDS)]
    assert missing == [] or max(missing) <= 18


def missing_values(made, source):
    """The times from 11 to 30 s at which a GPU lacks a value."""
    made.at(9.0)
    made.settled(source)
    missing = []
    for t in range(11, 31):
        made.at(float(t))
        readings = source.read()
        missing += [t for gpu in range(3) if set(samples_of_gpu(readings, gpu)) != set(FIELDS)]
    return missing


@pytest.mark.parametrize("remote", [None, AT_ITS_SOCKET])
def test_on_this_machine_the_new_binding_is_seen_and_everything_is_watched_at_once(engine, remote):
    made = engine(unbound(10.2, 0.5))
    source = made.source(*FIELDS, remote=remote, bindings=lambda devices: (1, 2 + made.state.binds, 3))
    # Profiling fields are blank once after each watch.
    assert set(missing_values(made, source)) == {11}


@pytest.mark.parametrize(("remote", "judged"), [("10.0.0.1:5555", False), (AT_ITS_SOCKET, True), (None, True)])
def test_only_an_engine_of_this_machine_is_judged_by_the_bindings_of_this_machine(engine, remote, judged):
    made, asked = engine(), []
    source = made.source(*FIELDS, remote=remote, bindings=lambda devices: tuple(asked.append(1) or asked))
    missing = missing_values(made, source)
    assert (bool(asked), bool(missing)) == (judged, judged)  # they change each time, and all is watched each time


def test_while_a_gpu_has_no_driver_it_is_down_and_the_others_are_read(engine):
    made = engine(unbound(10.5, 20.0))
    source = made.source(*FIELDS)
    made.at(9.0)
    made.settled(source)
    made.at(11.0)
    source.read()  # everything is watched anew, so that profiling fields are blank once
    for t in (12.0, 20.0, 30.0):
        made.at(t)
        readings = source.read()
        assert readings.down == (uuid_of(1),)
        assert [set(samples_of_gpu(readings, gpu)) for gpu in range(3)] == [set(FIELDS), set(), set(FIELDS)], t
    made.at(31.0)
    source.read()
    made.at(32.0)
    readings = source.read()
    assert readings.down == ()
    assert [set(samples_of_gpu(readings, gpu)) for gpu in range(3)] == [set(FIELDS)] * 3
