"""Peer-to-peer statuses from the engine: of each pair of readable GPUs, or none and the reason."""

import pytest

from exporter.node.devices.counters.computed_metrics import P2P_STATUS, READ_BY_CALLS
from exporter.node.devices.readings.readings import P2pStatus
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import document, gpu_spec, samples_of_gpu, uuid_of, wanted

FUNCTION = "dcgmGetNvLinkP2PStatus"
OTHER_MODEL = {"model": "NVIDIA A100-SXM4-80GB"}


def source_of(engine):
    source = engine.source(150)
    source.want((*wanted(150), READ_BY_CALLS[P2P_STATUS]))
    return source


def test_each_ordered_pair_of_gpus_has_one_status(engine_of):
    engine = engine_of(document(gpu_spec(), gpu_spec(1), gpu_spec(2, **OTHER_MODEL)))
    a, b, c = (uuid_of(number) for number in range(3))
    assert set(source_of(engine).read().p2p) == {
        P2pStatus(a, b, 0), P2pStatus(b, a, 0),
        P2pStatus(a, c, 2), P2pStatus(c, a, 2), P2pStatus(b, c, 2), P2pStatus(c, b, 2),
    }  # fmt: skip


def test_it_is_not_asked_for_unless_it_is_wanted(engine_of):
    fault = {"event": "call", "function": FUNCTION, "status": -21}
    assert engine_of(document(gpu_spec(), events=[fault])).source(150).read().p2p == ()


def test_a_lost_gpu_is_in_no_pair(engine_of):
    lost = {"event": "lost", "device": uuid_of(1), "at": 5.0}
    engine = engine_of(document(*(gpu_spec(number) for number in range(3)), events=[lost]))
    source = source_of(engine)
    assert len(source.read().p2p) == 6
    engine.at(6.0)
    assert {(pair.uuid, pair.peer) for pair in source.read().p2p} == {
        (uuid_of(0), uuid_of(2)),
        (uuid_of(2), uuid_of(0)),
    }


@pytest.mark.parametrize("status", [-6, -12, -20, -3])
def test_a_call_that_fails_costs_the_statuses_only_and_is_a_problem(engine_of, status):
    fault = {"event": "call", "function": FUNCTION, "at": 5.0, "for": 5.0, "status": status}
    engine = engine_of(document(gpu_spec(), gpu_spec(1), events=[fault]))
    source = source_of(engine)
    engine.at(6.0)
    readings = source.read()
    assert (readings.p2p, [reason for reason, _ in readings.problems]) == ((), ["p2p_unreadable"])
    assert samples_of_gpu(readings) == {150: 40}
    engine.at(11.0)
    readings = source.read()
    assert (len(readings.p2p), readings.problems) == (2, ())


def test_a_lost_connection_is_a_lost_connection(engine_of):
    fault = {"event": "call", "function": FUNCTION, "status": -21}
    with pytest.raises(SourceError) as error:
        source_of(engine_of(document(gpu_spec(), gpu_spec(1), events=[fault]))).read()
    assert error.value.reason == "connection_lost"


def test_where_ids_and_positions_differ_no_pair_is_guessed(engine_of):
    restart = {"event": "restart", "at": 5.0}
    engine = engine_of(document(gpu_spec(), gpu_spec(1), events=[restart]))
    source = source_of(engine)
    assert len(source.read().p2p) == 2
    engine.at(6.0)
    readings = source.read()
    assert (readings.p2p, [reason for reason, _ in readings.problems]) == ((), ["p2p_unreadable"])
