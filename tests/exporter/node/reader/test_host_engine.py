"""A host engine is asked in the background, by a thread that delays nothing and that no defect ends."""

import threading

import pytest

from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.host_engine import HostEngine
from exporter.source import SourceError
from tests.waiting import until

LIMIT_SECONDS = 30.0


class SlowSource:
    """Does what `outcomes` have next; a read in the background waits until it is allowed."""

    name = "dcgm"

    def __init__(self, *outcomes):
        self.outcomes, self.allowed, self.closed = list(outcomes), threading.Event(), False

    def read(self):
        assert self.allowed.wait(LIMIT_SECONDS)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self):
        self.closed = True


def test_asking_does_not_wait_for_the_answer():
    source = SlowSource(Readings("dcgm", 1.0, ()), Readings("dcgm", 2.0, ()))
    started = []

    def start(function):
        started.append(threading.Thread(target=function))
        started[-1].start()

    engine = HostEngine(source, start)
    assert not engine.answers()
    assert not engine.answers()
    source.allowed.set()
    started[0].join(LIMIT_SECONDS)
    assert engine.answers()
    assert engine.read().taken_at == 2.0
    assert len(started) == 1


def test_whatever_is_raised_while_it_is_asked_it_is_asked_again(caplog):
    source = SlowSource(SourceError("connection_lost", "away"), ValueError("a defect"), Readings("dcgm", 1.0, ()))
    source.allowed.set()
    engine = HostEngine(source, lambda function: function())
    assert [engine.answers() for _ in range(4)] == [False, False, False, True]
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]


def test_the_thread_does_not_keep_the_process_from_ending():
    source = SlowSource(SourceError("connection_lost", "away"))
    engine = HostEngine(source)
    assert not engine.answers()
    asking = [thread for thread in threading.enumerate() if thread.name == "host engine"]
    assert [thread.daemon for thread in asking] == [True]
    engine.close()
    assert not source.closed
    source.allowed.set()
    asking[0].join(LIMIT_SECONDS)
    engine.close()
    assert source.closed


def test_a_read_that_is_limited_in_time_returns_the_answer_or_raises_why_there_is_none(caplog):
    source = SlowSource(Readings("dcgm", 1.0, ()), SourceError("connection_lost", "away"), ValueError("a defect"))
    source.allowed.set()
    engine = HostEngine(source)
    assert engine.read_within(LIMIT_SECONDS).taken_at == 1.0
    for reason in ("connection_lost", "internal"):
        with pytest.raises(SourceError) as error:
            engine.read_within(LIMIT_SECONDS)
        assert error.value.reason == reason
    assert len(caplog.records) == 1


def test_after_a_read_that_is_limited_in_time_the_asking_goes_on_in_the_background():
    source = SlowSource(Readings("dcgm", 1.0, ()), Readings("dcgm", 2.0, ()))
    engine = HostEngine(source)
    for message in ("has not answered within 0 s", "is being asked again"):
        with pytest.raises(SourceError, match=message):
            engine.read_within(0.01)
    source.allowed.set()
    until(engine.answers)
    assert engine.read_within(LIMIT_SECONDS).taken_at == 2.0
