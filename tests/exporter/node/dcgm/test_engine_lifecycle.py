"""The dcgm source while its engine ends, restarts, is another one, or fails a call."""

import ctypes

import pytest

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.dcgm.source import DcgmSource
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    rejected,
    samples,
    samples_of_gpu,
    uuid_of,
)
from tests.exporter.node.dcgm.source_parts import CountingLibrary, WatchTimes, mig_gpu_spec, reason


def test_after_a_restart_with_other_ids_the_same_collection_has_every_value(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1), events=[{"event": "restart", "at": 10.0}]))
    source = engine.source(150)
    before = samples(source.read())
    engine.at(11.0)
    assert samples(source.read()) == before == {(uuid_of(n), -1, -1, 150): 40 + n for n in (0, 1)}


def test_no_value_is_exposed_while_the_engine_is_away_and_all_are_when_it_is_back(engine_of):
    engine = engine_of(document(gpu_spec(0), events=[{"event": "restart", "at": 10.0, "for": 20.0}]))
    source = engine.source(150)
    source.read()
    engine.at(10.0)
    assert reason(source.read) == "connection_lost"
    engine.at(10.5)
    with pytest.raises(SourceError, match="next attempt in") as caught:
        source.read()
    assert caught.value.reason == "connection_lost"
    for t in (11.5, 14.0, 19.0, 28.0):
        engine.at(t)
        assert reason(source.read) == "connection_lost"
    engine.at(60.0)
    assert samples_of_gpu(source.read()) == {150: 40}


def test_where_nothing_listens_libdcgm_which_would_block_is_not_asked_to_connect(engine_of):
    outage = {"event": "disconnect", "at": 10.0, "for": 20.0}
    engine = engine_of(document(gpu_spec(0), events=[outage]))
    libraries = []
    source = engine.source(150, load=lambda path: libraries.append(CountingLibrary(path)) or libraries[-1])
    source.read()
    for t in (10.0, 11.5, 14.0, 19.0):
        engine.at(t)
        with pytest.raises(SourceError, match="nothing accepts connections at /") as caught:
            source.read()
        assert caught.value.reason == "connection_lost"
    assert libraries[0].calls["dcgmConnect_v2"] == 1


def test_an_engine_of_another_virtual_machine_takes_a_libdcgm_that_knows_such_addresses(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    source = engine.source(150, remote="vsock://2:5555")
    if engine.library.name == "libdcgm.so.4":
        assert samples_of_gpu(source.read()) == {150: 40}
    else:
        assert reason(source.read) == "function_missing"


def test_a_lost_connection_is_replaced(engine_of):
    engine = engine_of(document(gpu_spec(0), events=[{"event": "disconnect", "at": 3.0, "for": 2.0}]))
    source = engine.source(150, 155)
    source.read()
    engine.at(6.0)
    assert samples_of_gpu(source.read()) == {150: 40, 155: 100.5}


def test_an_embedded_engine_gives_the_same_values(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    assert samples_of_gpu(engine.source(150, remote=None).read()) == {150: 40}


def test_an_engine_that_is_embedded_beside_another_is_read_and_said(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    for beside, problems in (("a host engine listens at 127.0.0.1:5555", ["second_engine"]), ("", [])):
        source = DcgmSource(engine.config(150, remote=None), beside=lambda beside=beside: beside)
        readings = source.read()
        assert [reason for reason, _ in readings.problems] == problems
        assert len(readings.inventory) == 1
        source.close()


def test_an_embedded_engine_without_gpus_is_an_error_and_a_host_engine_without_gpus_is_not(engine_of):
    lost = {"event": "lost", "device": uuid_of(0), "at": 0.0, "as": "absent"}
    engine = engine_of(document(gpu_spec(0), events=[lost]))
    assert reason(engine.source(150, remote=None).read) == "no_devices"
    assert engine.source(150).read().inventory == ()


def test_an_embedded_engine_without_a_driver_is_dead(engine_of):
    fault = {"event": "call", "function": "dcgmWatchFields", "status": -56}
    engine = engine_of(document(gpu_spec(0), events=[fault]))
    assert reason(engine.source(150, remote=None).read) == "engine_dead"
    assert reason(engine.source(150).read) == "driver_missing"


@pytest.mark.parametrize(
    ("function", "status", "expected"),
    [
        ("dcgmConnect_v2", -21, "connection_lost"),
        ("dcgmHostengineIsHealthy", -21, "connection_lost"),
        ("dcgmGroupCreate", -24, "limit_reached"),
        ("dcgmFieldGroupCreate", -26, "name_taken"),
        ("dcgmEntitiesGetLatestValues", -11, "timeout"),
        ("dcgmEntitiesGetLatestValues", -12, "version_mismatch"),
        ("dcgmGetAllDevices", -3, "engine_error"),
    ],
)
def test_a_failing_call_is_a_reason_and_the_next_connection_reads_again(engine_of, function, status, expected):
    fault = {"event": "call", "function": function, "status": status, "for": 5.0}
    engine = engine_of(document(gpu_spec(0), events=[fault]))
    source = engine.source(150)
    assert reason(source.read) == expected
    engine.at(6.0)
    assert samples_of_gpu(source.read()) == {150: 40}


def test_when_other_clients_have_all_groups_that_is_the_reason_until_they_destroy_some(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    other = EngineConnection(DcgmLibrary(str(engine.library)), engine.socket.address)
    groups = []
    while other.status("dcgmGroupCreate", layout.GROUP_EMPTY, b"other", ctypes.byref(group := ctypes.c_size_t())) == 0:
        groups.append(group)
    source = engine.source(150)
    assert (len(groups), reason(source.read)) == (61, "limit_reached")
    other.call("dcgmGroupDestroy", groups[0])
    engine.at(60.0)
    assert samples_of_gpu(source.read()) == {150: 40}


def test_the_pause_before_everything_is_watched_again_doubles_until_the_topology_changes(engine_of):
    stale = {"event": "samples", "at": 0.0, "stale": True, "fields": ["150"], "devices": [uuid_of(1)]}
    change = {"event": "mig", "device": uuid_of(0), "at": 20.0, "instances": [instance_spec(1), instance_spec(2)]}
    engine = engine_of(document(mig_gpu_spec(instance_spec(1)), gpu_spec(1), events=[stale, change]))
    libraries = []
    source = engine.source(150, load=lambda path: libraries.append(WatchTimes(path, engine)) or libraries[-1])
    for second in range(40):
        engine.at(float(second))
        source.read()
    assert libraries[0].times == [0, 7, 12, 25, 35]


def test_devices_of_an_engine_whose_clock_is_off_are_discovered_but_their_values_are_stale(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    engine.tick_with_clock_behind(3600.0)
    readings = engine.source(1, 150).read()
    assert [device.uuid for device in readings.inventory] == [uuid_of(0)]
    assert samples_of_gpu(readings) == {1: "570.133.20"}
    assert rejected(readings) == {(150, "stale"): 1}
