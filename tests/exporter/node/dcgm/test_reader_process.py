"""The dcgm source where it lives: in a reader child, over the stand-in library, through hangs and crashes."""

import time

import pytest

from exporter.node.reader.supervisor import Patience, Reader
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import board, document, of_board

QUICK = Patience(deadline=1.0, opening=10.0, first_pause=0.05, longest_pause=0.1)


@pytest.fixture
def playing(stage_of):
    readers = []

    def make(*events):
        stage = stage_of(document(board(0), events=events), clock=time.time)
        readers.append(Reader(stage.config(150, 155, interval=5.0), QUICK))
        return stage, readers[-1]

    yield make
    for reader in readers:
        reader.close()


def until(stage, reader, good, seconds=20.0):
    """Reads on while the scenario plays until `good` holds for what came (readings or a reason)."""
    end, came = time.monotonic() + seconds, []
    while time.monotonic() < end:
        stage.player.tick()
        try:
            came.append(reader.read())
        except SourceError as error:
            came.append(error.reason)
        if good(came[-1]):
            return came
        time.sleep(0.02)
    raise AssertionError([one for one in came if isinstance(one, str)][-20:])


def answered(came):
    return not isinstance(came, str)


def test_values_come_through_the_pipe(playing):
    stage, reader = playing()
    assert of_board(until(stage, reader, answered)[-1]) == {150: 40, 155: 100.5}
    assert reader.name == "dcgm"


@pytest.mark.parametrize(("how", "reason"), [({"hang": True}, "hung"), ({"crash": True}, "crashed")])
def test_a_library_that_hangs_or_aborts_costs_one_child(playing, how, reason):
    fault = {"event": "call", "function": "dcgmEntitiesGetLatestValues", "at": 4.0, "for": 3.0} | how
    stage, reader = playing(fault)
    until(stage, reader, answered)
    first = reader.pid
    assert reason in until(stage, reader, lambda came: came == reason)
    until(stage, reader, answered)
    assert reader.pid != first
    assert reader.restarts >= 1


def test_an_engine_that_goes_and_comes_keeps_the_child(playing):
    stage, reader = playing({"event": "restart", "at": 4.0, "for": 2.0})
    until(stage, reader, answered)
    first = reader.pid
    until(stage, reader, lambda came: came == "connection_lost")
    until(stage, reader, answered)
    assert reader.pid == first
