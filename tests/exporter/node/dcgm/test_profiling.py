"""Profiling fields that the engine rejects, pauses or leaves blank: only they are missing, and they are tried again."""

import pytest

from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    rejected,
    samples,
    samples_of_gpu,
    uuid_of,
)
from tests.exporter.node.dcgm.rejecting_library import rejecting


def test_of_several_fields_only_the_one_that_the_engine_does_not_know_is_missing(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), versions={"dcgm": "4.0.0"}))
    source = engine.source(100, 150, 155, 1501, 203, 1523, 252)
    for _ in range(3):
        readings = source.read()
        assert set(samples_of_gpu(readings)) == {150, 155, 203, 252}
        assert rejected(readings) == {(100, "not_supported"): 2, (1501, "not_supported"): 2, (1523, "not_supported"): 2}
        assert [(reason, "1501, 1523" in message) for reason, message in readings.problems] == [("unknown_field", True)]


@pytest.mark.parametrize(
    ("status", "problem", "counted"),
    [
        (-37, "profiling_in_use", "blank"),
        (-33, "profiling_module_not_loaded", "not_supported"),
        (-29, "profiling_requires_root", "no_permission"),
        (-36, "profiling_not_supported", "not_supported"),
    ],
)
def test_when_profiling_is_rejected_only_profiling_is_missing(engine_of, status, problem, counted):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1)))
    source = engine.source(150, 1001, 1004, load=rejecting(lambda fields, _: status if fields[0] > 1000 else 0))
    readings = source.read()
    assert samples_of_gpu(readings) == {150: 40}
    assert readings.problems[0][0] == problem
    assert rejected(readings) == {(1001, counted): 2, (1004, counted): 2}


def test_profiling_that_was_in_use_is_tried_again_after_a_pause(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    source = engine.source(
        150, 1004, load=rejecting(lambda fields, _: -37 if fields == (1004,) and engine.t < 40 else 0)
    )
    source.read()
    engine.at(31.0)
    assert source.read().problems
    engine.at(45.0)
    assert source.read().problems, "the second pause is twice as long"
    engine.at(92.0)
    readings = engine.settled(source)
    assert readings.problems == ()
    assert samples_of_gpu(readings) == {150: 40, 1004: 0.25}


def test_after_a_final_rejection_profiling_is_not_tried_again_until_the_engine_restarts(engine_of):
    engine = engine_of(document(gpu_spec(0), events=[{"event": "restart", "at": 5000.0}]))
    load = rejecting(lambda fields, _: -36 if fields == (1004,) and engine.t < 4000 else 0)
    source = engine.source(150, 1004, load=load)
    source.read()
    engine.at(4500.0)
    assert source.read().problems
    engine.at(5001.0)
    assert source.read().problems == ()


def test_profiling_rejected_for_one_gpu_is_watched_on_the_others(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), gpu_spec(2)))
    load = rejecting(lambda fields, entities: -36 if fields[0] > 1000 and 1 in entities else 0)
    readings = engine.settled(engine.source(150, 1004, load=load))
    assert {key[0]: value for key, value in samples(readings).items() if key[3] == 1004} == {
        uuid_of(0): 0.25,
        uuid_of(2): 0.25,
    }
    assert rejected(readings) == {(1004, "not_supported"): 1}


def test_of_a_mixed_node_only_the_gpu_that_needs_the_missing_profiling_module_has_no_profiling(engine_of):
    gpus = (gpu_spec(0), gpu_spec(1, architecture="turing"), gpu_spec(2))
    engine = engine_of(document(*gpus, profiling_module=False))
    readings = engine.settled(engine.source(150, 1001, 1004))
    assert {key[0] for key in samples(readings) if key[3] == 1004} == {uuid_of(0), uuid_of(2)}
    assert {key[0] for key in samples(readings) if key[3] == 150} == {uuid_of(n) for n in range(3)}
    assert rejected(readings)[1004, "not_supported"] == 1
    assert [reason for reason, _ in readings.problems] == ["profiling_module_not_loaded"]
    assert readings.down == ()


def test_an_attempt_to_profile_is_not_postponed_by_attempts_to_watch_other_fields(engine_of):
    fault = {"event": "call", "function": "dcgmWatchFields", "status": -3, "device": uuid_of(1)}
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[fault]))
    load = rejecting(lambda fields, _: -37 if fields == (1004,) and engine.t < 25 else 0)
    source = engine.source(150, 1004, load=load)
    for second in range(33):
        engine.at(float(second))
        readings = source.read()
    assert samples_of_gpu(readings) == {150: 40, 1004: 0.25}


def test_profiling_without_its_module_is_tried_again(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    load = rejecting(lambda fields, _: -33 if fields == (1004,) and engine.t < 40 else 0)
    source = engine.source(150, 1004, load=load)
    assert source.read().problems
    engine.at(100.0)
    readings = engine.settled(source)
    assert (readings.problems, samples_of_gpu(readings)) == ((), {150: 40, 1004: 0.25})


def test_profiling_that_is_blank_after_its_first_watch_is_not_counted_as_rejected(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    source = engine.source(150, 1004)
    first = source.read()
    assert (samples_of_gpu(first), rejected(first)) == ({150: 40}, {})
    engine.at(1.0)
    assert samples_of_gpu(source.read()) == {150: 40, 1004: 0.25}


def test_profiling_that_stays_blank_is_counted(engine_of):
    blank = {"event": "samples", "sentinel": "blank", "fields": ["1004"]}
    engine = engine_of(document(gpu_spec(0), events=[blank]))
    source = engine.source(150, 1004)
    source.read()
    engine.at(5.0)
    assert rejected(source.read()) == {(1004, "blank"): 1}


def test_profiling_fields_that_cannot_be_measured_together_are_halved(engine_of):
    values = {str(number): 0.5 for number in range(1001, 1009)}
    engine = engine_of(document(gpu_spec(0, fields=values)))
    load = rejecting(lambda fields, _: -38 if len(fields) > 3 else 0)
    readings = engine.settled(engine.source(*range(1001, 1009), load=load))
    assert set(samples_of_gpu(readings)) == {1001, 1002}
    assert readings.problems[0][0] == "profiling_multi_pass"


def test_the_pause_between_attempts_doubles_and_is_the_first_one_again_after_a_success(engine_of):
    outages = [{"event": "disconnect", "at": at, "for": 50.0} for at in (100.0, 200.0)]
    engine = engine_of(document(gpu_spec(0), events=outages))
    source = engine.source(150)
    source.read()
    assert attempts(engine, source, 100.0, 142.0) == [100.0, 101.0, 103.0, 107.0, 115.0, 131.0]
    engine.at(172.0)
    assert samples_of_gpu(source.read()) == {150: 40}
    assert attempts(engine, source, 200.0, 204.0) == [200.0, 201.0, 203.0]


def attempts(engine, source, begin, end):
    """Read ten times a second; return the times at which the source really tried to connect."""
    times = []
    for step in range(round(begin * 10), round(end * 10)):
        engine.at(step / 10)
        with pytest.raises(SourceError) as caught:
            source.read()
        if "next attempt" not in str(caught.value):
            times.append(engine.t)
    return times


def test_profiling_that_is_paused_is_said_and_costs_nothing_else(engine_of):
    """While it is paused (dcgmProfPause) the engine has blank values of profiling fields."""
    paused = {"event": "samples", "at": 10.0, "for": 5.0, "fields": ["1004", "1005"], "sentinel": "blank"}
    fields = {"150": 40, "1004": 0.25, "1005": 0.5}
    engine = engine_of(document(gpu_spec(0, fields=fields), gpu_spec(1, fields=fields), events=[paused]))
    source = engine.source(150, 1004, 1005)
    assert engine.settled(source).problems == ()
    engine.at(11.0)
    readings = source.read()
    assert [reason for reason, _ in readings.problems] == ["profiling_blank"]
    assert samples_of_gpu(readings) == {150: 40}
    engine.at(16.0)
    readings = source.read()
    assert (readings.problems, samples_of_gpu(readings)) == ((), fields_by_id(fields))


def test_profiling_that_has_not_been_sampled_for_an_interval_yet_is_not_taken_for_a_pause(engine_of):
    """The first collections of the exporter are a second apart, whatever the interval is."""
    blank = {"event": "samples", "at": 0.0, "for": 29.0, "fields": ["1004"], "sentinel": "blank"}
    engine = engine_of(document(gpu_spec(0, fields={"150": 40, "1004": 0.25}), events=[blank]))
    source = engine.source(150, 1004, interval=30.0)
    for t in (0.0, 1.0, 2.0):
        engine.at(t)
        assert source.read().problems == ()
    engine.at(32.0)
    readings = source.read()
    assert (readings.problems, samples_of_gpu(readings)) == ((), {150: 40, 1004: 0.25})


@pytest.mark.parametrize("fault", [{"devices": [uuid_of(1)]}, {"fields": ["1004"]}], ids=["one GPU", "one field"])
def test_blank_profiling_of_one_gpu_or_one_field_is_not_taken_for_a_pause(engine_of, fault):
    fields = {"150": 40, "1004": 0.25, "1005": 0.5}
    blank = {"event": "samples", "at": 10.0, "fields": ["1004", "1005"], "sentinel": "blank"} | fault
    engine = engine_of(document(gpu_spec(0, fields=fields), gpu_spec(1, fields=fields), events=[blank]))
    source = engine.source(150, 1004, 1005)
    engine.settled(source)
    engine.at(11.0)
    assert source.read().problems == ()


def fields_by_id(fields):
    return {int(number): value for number, value in fields.items()}
