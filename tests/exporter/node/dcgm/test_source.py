"""The dcgm source over the fake library: which values are exposed, and when none are."""

import ctypes
from collections import Counter

import msgspec
import pytest

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices import field_ids
from exporter.node.devices.validity import EVENT_SECONDS
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import (
    document,
    gpu_spec,
    instance_spec,
    rejected,
    samples,
    samples_of_gpu,
    uuid_of,
    wanted,
)
from tests.exporter.node.dcgm.rejecting_library import rejecting
from tests.exporter.node.read_fields import READ

ALL = (1, 54, 100, 140, 150, 155, 156, 202, 203, 230, 252, 254, 393, 1001, 1004, 1005, 1009)


def without_numa(inventory):
    return [msgspec.structs.replace(device, numa_node=-1) for device in inventory]


def reason(read):
    with pytest.raises(SourceError) as caught:
        read()
    return caught.value.reason


@pytest.mark.parametrize("scenario", ["whole", "mig", "time_sliced"])
def test_readings_of_a_scenario_equal_those_of_the_simulated_source(engine_of, scenario):
    engine = engine_of(scenario)
    source = engine.source(*ALL)
    source.read()
    for t in (1.0, 2.0, 30.0, 31.0, 400.0):
        engine.at(t)
        real, simulated = source.read(), engine.simulated(engine.config(*ALL))
        assert without_numa(real.inventory) == without_numa(simulated.inventory)
        assert samples(real) == samples(simulated)
        assert samples(real)
        assert rejected(real) == rejected(simulated)
        assert (real.down, real.versions) == (simulated.down, simulated.versions)
        assert real.problems == ()


def test_every_known_field_can_be_read_at_once(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1)))
    readings = engine.source(*READ).read()
    assert samples_of_gpu(readings)[155] == 100.5
    assert {field for batch in readings.batches for field in batch.fields} | {
        entry.field for entry in readings.rejections
    } >= {field.id for field in READ.values() if field.watch == "basic"}


class RecordingLibrary(DcgmLibrary):
    """libdcgm that records the fields of every live read."""

    def __init__(self, path):
        self.read_live = set()
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmEntitiesGetLatestValues" and arguments[5] == layout.LIVE_DATA:
            self.read_live |= set(arguments[3])
        return super().status(function, *arguments)


def test_no_profiling_field_is_ever_read_live(engine_of):
    """A live read of one crashes engine 4.6.0 (measured)."""
    lost = {"event": "lost", "device": uuid_of(1), "at": 1.0}
    engine = engine_of(document(mig_gpu_spec(instance_spec(1, 0, 1)), gpu_spec(1), events=[lost]))
    libraries = []
    source = engine.source(*READ, load=lambda path: libraries.append(RecordingLibrary(path)) or libraries[-1])
    source.read()
    engine.at(2.0)
    source.read()
    read_live = libraries[0].read_live
    assert {field_ids.UUID, field_ids.DRIVER_VERSION} <= read_live
    assert {number for number in read_live if READ[number].watch == "profiling"} == set()


def test_integers_stay_exact(engine_of):
    engine = engine_of(document(gpu_spec(0, fields={"156": 2**53 + 1})))
    assert samples_of_gpu(engine.source(156).read())[156] == 2**53 + 1


@pytest.mark.parametrize("sentinel", ["blank", "not_found", "not_supported", "no_permission"])
def test_a_blank_value_of_any_type_is_counted_and_never_exposed(engine_of, sentinel):
    fault = {
        "event": "samples",
        "at": 5.0,
        "for": 5.0,
        "sentinel": sentinel,
        "fields": ["53", "150", "155", "254", "1004"],
    }
    engine = engine_of(document(gpu_spec(0, serial="1650"), events=[fault]))
    source = engine.source(53, 150, 155, 254, 1004)
    assert set(samples_of_gpu(engine.settled(source))) == {53, 150, 155, 254, 1004}
    engine.at(5.0)
    readings = source.read()
    assert samples_of_gpu(readings) == {}
    assert rejected(readings) == {(field, sentinel): 1 for field in (53, 150, 155, 254, 1004)}
    engine.at(10.0)
    assert set(samples_of_gpu(source.read())) == {53, 150, 155, 254, 1004}


@pytest.mark.parametrize(
    ("status", "expected"),
    [(-6, "not_supported"), (-17, "no_permission"), (-15, "stale"), (-45, "not_found"), (-54, "blank"), (-14, "blank")],
)
def test_a_value_with_a_status_is_counted_by_its_reason(engine_of, status, expected):
    engine = engine_of(document(gpu_spec(0), events=[{"event": "samples", "status": status, "fields": ["150"]}]))
    readings = engine.source(150, 155).read()
    assert samples_of_gpu(readings) == {155: 100.5}
    assert rejected(readings) == {(150, expected): 1}


def test_a_value_whose_timestamp_stops_is_stale_after_three_intervals_or_five_seconds(engine_of):
    engine = engine_of(
        document(gpu_spec(0), events=[{"event": "samples", "at": 1.0, "stale": True, "fields": ["150"]}])
    )
    source = engine.source(150, 155, interval=2.0)
    engine.at(1.0)
    source.read()
    engine.at(7.0)
    assert set(samples_of_gpu(source.read())) == {150, 155}
    engine.at(7.5)
    readings = source.read()
    assert samples_of_gpu(readings) == {155: 100.5}
    assert rejected(readings) == {(150, "stale"): 1}


def test_a_value_above_the_limit_of_its_field_is_not_exposed(engine_of):
    engine = engine_of(document(gpu_spec(0, fields={"1004": 1.5, "150": 40})))
    readings = engine.settled(engine.source(150, 1004))
    assert samples_of_gpu(readings) == {150: 40}
    assert rejected(readings) == {(1004, "out_of_range"): 1}


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


class CountingLibrary(DcgmLibrary):
    """libdcgm that counts the calls of each function."""

    def __init__(self, path):
        self.calls = Counter()
        super().__init__(path)

    def status(self, function, *arguments):
        self.calls[function] += 1
        return super().status(function, *arguments)


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


def mig_gpu_spec(*instances, number=0, **more):
    return gpu_spec(number, mig=True, instances=list(instances), **more)


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


def test_seventy_instances_are_read_in_as_many_calls_as_the_limits_require(engine_of):
    numbers = (250, 251, 252, 253, 254, *range(1001, 1009), *range(1013, 1017))
    values = {str(number): 0.5 if number > 1000 or number == 254 else 10 for number in numbers}
    instances = [instance_spec(gi) | {"fields": values} for gi in range(7)]
    engine = engine_of(document(*(mig_gpu_spec(*instances, number=number) for number in range(10))))
    exposed = samples(engine.settled(engine.source(*numbers, 150, 155, 230)))
    assert len({key[:3] for key in exposed if key[1] >= 0}) == 70
    assert len(exposed) == 70 * len(numbers) + 10 * 3


def test_an_embedded_engine_gives_the_same_values(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    assert samples_of_gpu(engine.source(150, remote=None).read()) == {150: 40}


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


class WatchTimes(DcgmLibrary):
    """libdcgm that records when fields are watched."""

    def __init__(self, path, engine):
        self.engine, self.times = engine, []
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmWatchFields" and self.engine.t not in self.times:
            self.times.append(self.engine.t)
        return super().status(function, *arguments)


def lost(number, at, **more):
    return {"event": "lost", "device": uuid_of(number), "at": at, **more}


class DiscoveryTimes(WatchTimes):
    """libdcgm that records when the driver is asked, which only a discovery does."""

    def status(self, function, *arguments):
        live = function == "dcgmEntitiesGetLatestValues" and arguments[5] == layout.LIVE_DATA
        if live and self.engine.t not in self.times:
            self.times.append(self.engine.t)
        return DcgmLibrary.status(self, function, *arguments)


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


def test_the_fields_of_the_node_are_on_every_gpu_once(engine_of):
    engine = engine_of(document(gpu_spec(0), mig_gpu_spec(instance_spec(1), number=1)))
    exposed = samples(engine.source(1, 5, 150).read())
    assert {key[:3] for key in exposed if key[3] == 1} == {(uuid_of(0), -1, -1), (uuid_of(1), -1, -1)}
    assert exposed[uuid_of(0), -1, -1, 1] == "570.133.20"


def test_a_field_that_is_wanted_twice_is_read_once(engine_of):
    engine = engine_of(document(gpu_spec(0)))
    assert wanted(150) == wanted(150, 150)[:1]
    assert samples_of_gpu(engine.source(150, 150).read()) == {150: 40}


def test_other_fields_are_read_from_the_next_read_on_and_what_is_watched_stays_so(engine_of):
    xid = {"event": "xid", "device": uuid_of(0), "at": 5.0, "xid": 31}
    engine = engine_of(document(gpu_spec(), events=[xid]))
    source = engine.source(150, 230, 1004)
    source.read()
    engine.at(6.0)
    assert samples_of_gpu(source.read()) == {150: 40, 230: 31, 1004: 0.25}
    connection = source._session._connection
    source.want(wanted(155, 230, 1004))
    engine.at(7.0)
    # A profiling field that is watched anew would have no value now.
    assert samples_of_gpu(source.read()) == {155: 100.5, 230: 31, 1004: 0.25}
    source.want(wanted(1, 150, 155))
    engine.at(8.0)
    assert samples_of_gpu(source.read()).keys() == {1, 150, 155}
    assert source._session._connection is connection
