"""An engine to which a connect says OK and that then answers nothing: over a dead login, or for 60 s."""

import time
from collections import Counter

import pytest

from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.reader.supervisor import Reader, ReaderTimings
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import document, gpu_spec, samples_of_gpu
from tests.waiting import until

ANSWERING = ("dcgmInit", "dcgmVersionInfo", "dcgmConnect_v2", "dcgmDisconnect", "dcgmShutdown")
"""The functions that ask the engine nothing."""
CONNECTION_NOT_VALID, TIMEOUT = -21, -11


class DeadLogin(DcgmLibrary):
    """A libdcgm whose connects answer OK, while every request answers -21 until `alive` is set."""

    def __init__(self, path):
        self.calls, self.alive = Counter(), False
        super().__init__(path)

    def status(self, function, *arguments):
        self.calls[function] += 1
        if function not in ANSWERING and not self.alive:
            return CONNECTION_NOT_VALID
        return super().status(function, *arguments)


@pytest.fixture
def login(engine_of):
    """The library, the engine and the source."""
    engine, libraries = engine_of(document(gpu_spec(0))), []
    source = engine.source(150, load=lambda path: libraries.append(DeadLogin(path)) or libraries[-1])
    with pytest.raises(SourceError) as caught:
        source.read()
    assert caught.value.reason == "connection_lost"
    return libraries[0], engine, source


def test_a_connect_that_says_ok_over_a_dead_login_is_a_lost_connection_and_costs_one_request(login):
    library, _, _ = login
    made = {name: library.calls[name] for name in ("dcgmConnect_v2", "dcgmHostengineIsHealthy", "dcgmDisconnect")}
    assert made == dict.fromkeys(made, 1)
    assert library.calls["dcgmGetAllDevices"] == 0


def test_a_dead_login_is_tried_again_after_growing_pauses_and_closes_what_it_opened(login):
    library, engine, source = login
    for t in range(1, 120):
        engine.at(float(t))
        with pytest.raises(SourceError) as caught:
            source.read()
        assert caught.value.reason == "connection_lost"
    assert library.calls["dcgmConnect_v2"] == library.calls["dcgmDisconnect"] == 8


def test_once_the_login_is_accepted_the_next_attempt_reads(login):
    library, engine, source = login
    library.alive = True
    engine.at(2.0)
    assert samples_of_gpu(source.read()) == {150: 40}


@pytest.mark.process
def test_an_engine_that_blocks_a_call_for_60_s_is_given_up_at_the_deadline_and_delays_no_read(engine_of):
    fault = {"event": "call", "function": "dcgmEntitiesGetLatestValues", "delay": 60.0, "status": TIMEOUT}
    engine = engine_of(document(gpu_spec(0), events=[fault | {"at": 1000.0, "for": 1000.0}]), clock=time.time)
    timings = ReaderTimings(deadline=2.0, first_pause=0.05, longest_pause=0.1)
    reader = Reader(engine.config(150, interval=1.0), timings)
    reasons, took = [], []

    def read():
        engine.tick()
        began = time.monotonic()
        try:
            return reader.read()
        except SourceError as error:
            reasons.append(error.reason)
            took.append(time.monotonic() - began)

    try:
        until(read)
        hanging = reader.pid
        engine.jump(1500.0)
        reasons.clear()
        until(lambda: read() is None and "hung" in reasons)
        assert reasons[: reasons.index("hung") + 1] == ["slow"] * reasons.index("hung") + ["hung"]
        assert max(took) < 30.0, "half of what libdcgm takes"
        engine.jump(3000.0)
        until(read)
        assert reader.pid != hanging
    finally:
        reader.close()
    assert ReaderTimings().deadline < 60.0
