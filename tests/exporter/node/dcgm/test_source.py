"""The dcgm source against the compiled stand-in: what is shown, and when it is not."""

import msgspec
import pytest

from exporter.node.dcgm.library import Library
from exporter.node.dcgm.values import EVENT_SECONDS
from exporter.node.devices.field import fields
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import board, cells, document, instance, of_board, rejected, uuid_of, wanted

ALL = (1, 54, 100, 140, 150, 155, 156, 202, 203, 230, 252, 254, 393, 1001, 1004, 1005, 1009)


def without_numa(inventory):
    return [msgspec.structs.replace(device, numa_node=-1) for device in inventory]


def reason(read):
    with pytest.raises(SourceError) as caught:
        read()
    return caught.value.reason


@pytest.mark.parametrize("scenario", ["whole", "mig", "time_sliced"])
def test_a_scenario_reads_as_the_simulated_source_plays_it(stage_of, scenario):
    stage = stage_of(scenario)
    source = stage.source(*ALL)
    for t in (0.0, 1.0, 30.0, 31.0, 400.0):
        stage.at(t)
        real, simulated = source.read(), stage.simulated(stage.config(*ALL))
        assert without_numa(real.inventory) == without_numa(simulated.inventory)
        assert cells(real) == cells(simulated)
        assert cells(real)
        assert rejected(real) == rejected(simulated)
        assert (real.down, real.versions) == (simulated.down, simulated.versions)
        assert real.problems == ()


def test_every_known_field_can_be_asked_for_at_once(stage_of):
    stage = stage_of(document(board(0), board(1)))
    readings = stage.source(*fields()).read()
    assert of_board(readings)[155] == 100.5
    assert {field for block in readings.blocks for field in block.fields} | {
        entry.field for entry in readings.rejections
    } >= {field.id for field in fields().values() if field.watch == "basic"}


def test_integers_stay_exact(stage_of):
    stage = stage_of(document(board(0, fields={"156": 2**53 + 1})))
    assert of_board(stage.source(156).read())[156] == 2**53 + 1


@pytest.mark.parametrize("sentinel", ["blank", "not_found", "not_supported", "no_permission"])
def test_a_sentinel_of_any_type_is_counted_and_never_shown(stage_of, sentinel):
    spoilt = {
        "event": "cells",
        "at": 5.0,
        "for": 5.0,
        "sentinel": sentinel,
        "fields": ["53", "150", "155", "254", "1004"],
    }
    stage = stage_of(document(board(0, serial="1650"), events=[spoilt]))
    source = stage.source(53, 150, 155, 254, 1004)
    assert set(of_board(source.read())) == {53, 150, 155, 254, 1004}
    stage.at(5.0)
    readings = source.read()
    assert of_board(readings) == {}
    assert rejected(readings) == {(field, sentinel): 1 for field in (53, 150, 155, 254, 1004)}
    stage.at(10.0)
    assert set(of_board(source.read())) == {53, 150, 155, 254, 1004}


@pytest.mark.parametrize(
    ("status", "expected"),
    [(-6, "not_supported"), (-17, "no_permission"), (-15, "stale"), (-45, "not_found"), (-54, "blank"), (-14, "blank")],
)
def test_a_value_with_a_status_is_counted_by_its_meaning(stage_of, status, expected):
    stage = stage_of(document(board(0), events=[{"event": "cells", "status": status, "fields": ["150"]}]))
    readings = stage.source(150, 155).read()
    assert of_board(readings) == {155: 100.5}
    assert rejected(readings) == {(150, expected): 1}


def test_a_value_that_stands_still_grows_stale_after_three_intervals_or_five_seconds(stage_of):
    stage = stage_of(document(board(0), events=[{"event": "cells", "at": 1.0, "stale": True, "fields": ["150"]}]))
    source = stage.source(150, 155, interval=2.0)
    stage.at(1.0)
    source.read()
    stage.at(7.0)
    assert set(of_board(source.read())) == {150, 155}
    stage.at(7.5)
    readings = source.read()
    assert of_board(readings) == {155: 100.5}
    assert rejected(readings) == {(150, "stale"): 1}


def test_a_value_above_its_fields_range_is_not_shown(stage_of):
    stage = stage_of(document(board(0, fields={"1004": 1.5, "150": 40})))
    readings = stage.source(150, 1004).read()
    assert of_board(readings) == {150: 40}
    assert rejected(readings) == {(1004, "out_of_range"): 1}


def test_an_engine_that_restarts_with_other_ids_is_read_on_in_the_same_pass(stage_of):
    stage = stage_of(document(board(0), board(1), events=[{"event": "restart", "at": 10.0}]))
    source = stage.source(150)
    before = cells(source.read())
    stage.at(11.0)
    assert cells(source.read()) == before == {(uuid_of(n), -1, -1, 150): 40 + n for n in (0, 1)}


def test_while_the_engine_is_away_nothing_is_shown_and_then_it_is_found_again(stage_of):
    stage = stage_of(document(board(0), events=[{"event": "restart", "at": 10.0, "for": 20.0}]))
    source = stage.source(150)
    source.read()
    stage.at(10.0)
    assert reason(source.read) == "connection_lost"
    stage.at(10.5)
    with pytest.raises(SourceError, match="next try in") as caught:
        source.read()
    assert caught.value.reason == "connection_lost"
    for t in (11.5, 14.0, 19.0, 28.0):
        stage.at(t)
        assert reason(source.read) == "connection_lost"
    stage.at(60.0)
    assert of_board(source.read()) == {150: 40}


def test_a_broken_connection_is_replaced(stage_of):
    stage = stage_of(document(board(0), events=[{"event": "disconnect", "at": 3.0, "for": 2.0}]))
    source = stage.source(150, 155)
    source.read()
    stage.at(6.0)
    assert of_board(source.read()) == {150: 40, 155: 100.5}


def test_a_field_that_the_engine_does_not_know_costs_itself_alone(stage_of):
    stage = stage_of(document(board(0), board(1), versions={"dcgm": "4.0.0"}))
    source = stage.source(100, 150, 155, 1501, 203, 1523, 252)
    for _ in range(3):
        readings = source.read()
        assert set(of_board(readings)) == {150, 155, 203, 252}
        assert rejected(readings) == {(100, "not_supported"): 2, (1501, "not_supported"): 2, (1523, "not_supported"): 2}
        assert [(reason, "1501, 1523" in sentence) for reason, sentence in readings.problems] == [
            ("unknown_field", True)
        ]


class Refusing(Library):
    """libdcgm whose engine refuses to watch some fields, as the profiling module does."""

    refuse = staticmethod(lambda fields, entities: 0)

    def __init__(self, path):
        self.groups, self.entities, self.asked = {}, {}, []
        super().__init__(path)

    def status(self, function, *arguments):
        status = 0
        if function == "dcgmWatchFields":
            fields = self.groups[arguments[2]]
            self.asked.append(fields)
            status = self.refuse(fields, self.entities[arguments[1]])
        status = status or super().status(function, *arguments)
        if function == "dcgmFieldGroupCreate" and status == 0:
            self.groups[arguments[4]._obj.value] = tuple(arguments[2])
        if function == "dcgmGroupAddEntity" and status == 0:
            self.entities.setdefault(arguments[1].value, []).append(arguments[3])
        return status


def refusing(refuse):
    def load(path):
        library = Refusing(path)
        library.refuse = refuse
        return library

    return load


@pytest.mark.parametrize(
    ("status", "problem", "counted"),
    [
        (-37, "profiling_in_use", "blank"),
        (-33, "profiling_module_not_loaded", "not_supported"),
        (-29, "profiling_requires_root", "no_permission"),
        (-36, "profiling_not_supported", "not_supported"),
    ],
)
def test_refused_profiling_costs_profiling_alone(stage_of, status, problem, counted):
    stage = stage_of(document(board(0), board(1)))
    source = stage.source(150, 1001, 1004, load=refusing(lambda fields, _: status if fields[0] > 1000 else 0))
    readings = source.read()
    assert of_board(readings) == {150: 40}
    assert readings.problems[0][0] == problem
    assert rejected(readings) == {(1001, counted): 2, (1004, counted): 2}


def test_profiling_that_was_in_use_is_asked_for_again_after_a_pause(stage_of):
    stage = stage_of(document(board(0)))
    source = stage.source(150, 1004, load=refusing(lambda fields, _: -37 if fields == (1004,) and stage.t < 40 else 0))
    source.read()
    stage.at(31.0)
    assert source.read().problems
    stage.at(45.0)
    assert source.read().problems, "the second pause is twice as long"
    stage.at(92.0)
    readings = source.read()
    assert readings.problems == ()
    assert of_board(readings) == {150: 40, 1004: 0.25}


def test_a_final_refusal_is_not_asked_again_in_this_engines_life(stage_of):
    stage = stage_of(document(board(0), events=[{"event": "restart", "at": 5000.0}]))
    refuse = refusing(lambda fields, _: -33 if fields == (1004,) and stage.t < 4000 else 0)
    source = stage.source(150, 1004, load=refuse)
    source.read()
    stage.at(4500.0)
    assert source.read().problems
    stage.at(5001.0)
    assert source.read().problems == ()


def test_profiling_refused_by_one_board_stays_on_the_others(stage_of):
    stage = stage_of(document(board(0), board(1), board(2)))
    refuse = refusing(lambda fields, entities: -36 if fields[0] > 1000 and 1 in entities else 0)
    readings = stage.source(150, 1004, load=refuse).read()
    assert {key[0]: value for key, value in cells(readings).items() if key[3] == 1004} == {
        uuid_of(0): 0.25,
        uuid_of(2): 0.25,
    }
    assert rejected(readings) == {(1004, "not_supported"): 1}


def test_profiling_fields_that_do_not_fit_into_one_pass_are_halved(stage_of):
    values = {str(number): 0.5 for number in range(1001, 1009)}
    stage = stage_of(document(board(0, fields=values)))
    refuse = refusing(lambda fields, _: -38 if len(fields) > 3 else 0)
    readings = stage.source(*range(1001, 1009), load=refuse).read()
    assert set(of_board(readings)) == {1001, 1002}
    assert readings.problems[0][0] == "profiling_multi_pass"


def mig_board(*instances, number=0, **more):
    return board(number, mig=True, instances=list(instances), **more)


def test_under_mig_board_values_are_the_boards_and_memory_the_instances(stage_of):
    stage = stage_of(document(mig_board(instance(1), instance(2)), board(1)))
    shown = cells(stage.source(150, 252, 1004, 1005).read())
    assert shown == {
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


def test_compute_instances_that_share_have_their_own_activity_and_one_framebuffer(stage_of):
    stage = stage_of(document(mig_board(instance(1, 0, 1, profile="2g.20gb"))))
    readings = stage.source(252, 1004, 1005).read()
    assert [(device.gi, device.ci, device.mig_uuids) for device in readings.inventory] == [
        (-1, -1, ()),
        (1, -1, ("MIG-1-0", "MIG-1-1")),
        (1, 0, ("MIG-1-0",)),
        (1, 1, ("MIG-1-1",)),
    ]
    assert {key[1:]: value for key, value in cells(readings).items()} == {
        (1, -1, 252): 101,
        (1, -1, 1005): 0.125,
        (1, 0, 1004): 0.5,
        (1, 1, 1004): 0.5,
    }


def test_a_mig_reconfiguration_is_followed_in_the_same_pass_although_ids_come_again(stage_of):
    change = {
        "event": "mig",
        "device": uuid_of(0),
        "at": 10.0,
        "instances": [instance(5, profile="3g.40gb", tag="new-")],
    }
    stage = stage_of(document(mig_board(instance(1), instance(2)), events=[change]))
    source = stage.source(150, 252)
    assert {key[1] for key in cells(source.read())} == {-1, 1, 2}
    stage.at(10.0)
    readings = source.read()
    assert {key[1:]: value for key, value in cells(readings).items()} == {(-1, -1, 150): 40, (5, -1, 252): 105}
    assert readings.inventory[1].profile == "3g.40gb"
    assert readings.inventory[1].mig_uuids == ("MIG-new-5-0",)


def test_an_instance_made_again_in_the_same_place_is_never_shown_with_the_old_ones_value_for_long(stage_of):
    again = instance(1, tensor=0.75, tag="new-")
    change = {"event": "mig", "device": uuid_of(0), "at": 10.0, "instances": [again]}
    stage = stage_of(document(mig_board(instance(1)), events=[change]))
    source = stage.source(1004)
    for t in range(10):
        stage.at(t)
        source.read()
    stage.at(16.0)
    stale = source.read()
    assert cells(stale) == {}
    assert rejected(stale) == {(1004, "stale"): 1}
    stage.at(17.0)
    readings = source.read()
    assert cells(readings) == {(uuid_of(0), 1, -1, 1004): 0.75}
    assert readings.inventory[1].mig_uuids == ("MIG-new-1-0",)


def test_a_hundred_reconfigurations_use_up_no_groups(stage_of):
    change = [
        {"event": "mig", "device": uuid_of(0), "at": float(t), "for": 1.0, "instances": [instance(t % 7, tag=f"{t}-")]}
        for t in range(1, 101)
    ]
    stage = stage_of(document(mig_board(instance(1)), events=change))
    source = stage.source(150, 230, 252, 1004)
    for t in range(1, 101):
        stage.at(float(t))
        assert (uuid_of(0), t % 7, -1, 252) in cells(source.read())


@pytest.mark.parametrize("seen", ["status", "blank", "absent"])
def test_a_lost_board_is_named_shows_nothing_and_comes_back(stage_of, seen):
    lost = {"event": "lost", "device": uuid_of(1), "at": 10.0, "for": 10.0, "as": seen}
    stage = stage_of(document(board(0), board(1), events=[lost]))
    source = stage.source(150, 155)
    assert source.read().down == ()
    stage.at(10.0)
    readings = source.read()
    assert readings.down == (uuid_of(1),)
    assert {key[0] for key in cells(readings)} == {uuid_of(0)}
    assert {device.uuid for device in readings.inventory} == {uuid_of(0), uuid_of(1)}
    stage.at(21.0)
    readings = source.read()
    assert readings.down == ()
    assert {key[0] for key in cells(readings)} == {uuid_of(0), uuid_of(1)}


@pytest.mark.parametrize("where", ["", "/1", "/1/0"])
def test_an_xid_belongs_to_the_board_wherever_it_is_filed_and_grows_old(stage_of, where):
    event = {"event": "xid", "device": uuid_of(0) + where, "at": 10.0, "xid": 63}
    stage = stage_of(document(mig_board(instance(1), instance(2)), board(1), events=[event]))
    source = stage.source(150, 230)
    readings = source.read()
    assert {key for key in cells(readings) if key[3] == 230} == set()
    assert rejected(readings) == {}, "that nothing has happened is no failure"
    stage.at(11.0)
    assert {key: value for key, value in cells(source.read()).items() if key[3] == 230} == {
        (uuid_of(0), -1, -1, 230): 63
    }
    stage.at(11.0 + EVENT_SECONDS)
    readings = source.read()
    assert {key for key in cells(readings) if key[3] == 230} == set()
    assert rejected(readings) == {}


def test_of_several_xids_of_a_board_the_last_is_shown_and_a_blank_hides_none(stage_of):
    events = [
        {"event": "xid", "device": f"{uuid_of(0)}/2", "at": 10.0, "xid": 63},
        {"event": "xid", "device": f"{uuid_of(0)}/1/0", "at": 12.0, "xid": 94},
        {"event": "cells", "at": 14.0, "fields": ["230"], "devices": [f"{uuid_of(0)}/1/0"], "sentinel": "blank"},
    ]
    stage = stage_of(document(mig_board(instance(1), instance(2)), events=events))
    source = stage.source(150, 230)
    for t, xid in ((11.0, 63), (13.0, 94), (15.0, 63)):
        stage.at(t)
        assert of_board(source.read())[230] == xid


def test_the_pause_between_attempts_doubles_and_starts_again_after_a_success(stage_of):
    stage = stage_of(document(board(0), events=[{"event": "disconnect", "at": 100.0, "for": 50.0}]))
    source = stage.source(150)
    source.read()
    attempts, last = [], None
    for step in range(1000, 1420):
        stage.at(step / 10)
        with pytest.raises(SourceError) as caught:
            source.read()
        if "next try" not in str(caught.value):
            attempts.append(stage.t if last is None else round(stage.t - last, 1))
            last = stage.t
    assert attempts == [100.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    stage.at(172.0)
    assert of_board(source.read()) == {150: 40}
    assert source._pause == 1.0


def test_seventy_instances_and_forty_fields_come_in_as_many_calls_as_it_takes(stage_of):
    numbers = (250, 251, 252, 253, 254, *range(1001, 1009), *range(1013, 1017))
    values = {str(number): 0.5 if number > 1000 or number == 254 else 10 for number in numbers}
    instances = [instance(gi) | {"fields": values} for gi in range(7)]
    stage = stage_of(document(*(mig_board(*instances, number=number) for number in range(10))))
    shown = cells(stage.source(*numbers, 150, 155, 230).read())
    assert len({key[:3] for key in shown if key[1] >= 0}) == 70
    assert len(shown) == 70 * len(numbers) + 10 * 2


def test_an_embedded_engine_reads_the_same(stage_of):
    stage = stage_of(document(board(0)))
    assert of_board(stage.source(150, remote=None).read()) == {150: 40}


def test_an_embedded_engine_without_gpus_asks_for_a_new_process_a_remote_one_is_just_empty(stage_of):
    lost = {"event": "lost", "device": uuid_of(0), "at": 0.0, "as": "absent"}
    stage = stage_of(document(board(0), events=[lost]))
    assert reason(stage.source(150, remote=None).read) == "no_devices"
    assert stage.source(150).read().inventory == ()


def test_an_embedded_engine_without_driver_is_dead(stage_of):
    fault = {"event": "call", "function": "dcgmWatchFields", "status": -56}
    stage = stage_of(document(board(0), events=[fault]))
    assert reason(stage.source(150, remote=None).read) == "engine_dead"
    assert reason(stage.source(150).read) == "driver_missing"


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
def test_a_failing_call_is_a_reason_and_the_next_life_reads_again(stage_of, function, status, expected):
    fault = {"event": "call", "function": function, "status": status, "for": 5.0}
    stage = stage_of(document(board(0), events=[fault]))
    source = stage.source(150)
    assert reason(source.read) == expected
    stage.at(6.0)
    assert of_board(source.read()) == {150: 40}


def test_without_a_readable_hierarchy_boards_are_still_read(stage_of):
    fault = {"event": "call", "function": "dcgmGetGpuInstanceHierarchy", "status": -29}
    stage = stage_of(document(board(0), events=[fault]))
    readings = stage.source(150).read()
    assert of_board(readings) == {150: 40}
    assert readings.problems[0][0] == "hierarchy_unreadable"


def test_a_board_without_a_uuid_is_a_problem_and_looked_at_again(stage_of):
    blank = {"event": "cells", "for": 3.0, "sentinel": "blank", "fields": ["54"], "devices": [uuid_of(1)]}
    stage = stage_of(document(board(0), board(1), events=[blank]))
    source = stage.source(150)
    readings = source.read()
    assert [problem for problem, _ in readings.problems] == ["device_unidentified"]
    assert {device.uuid for device in readings.inventory} == {uuid_of(0)}
    stage.at(6.0)
    readings = source.read()
    assert readings.problems == ()
    assert len(cells(readings)) == 2


def test_an_engine_whose_clock_is_off_is_described_but_its_values_are_not_believed(stage_of):
    stage = stage_of(document(board(0)))
    stage.player._begin -= 3600
    stage.player.tick(0.0)
    stage.player._begin += 3600
    readings = stage.source(1, 150).read()
    assert [device.uuid for device in readings.inventory] == [uuid_of(0)]
    assert of_board(readings) == {1: "570.133.20"}
    assert rejected(readings) == {(150, "stale"): 1}


def test_the_nodes_own_fields_are_on_every_board_once(stage_of):
    stage = stage_of(document(board(0), mig_board(instance(1), number=1)))
    shown = cells(stage.source(1, 5, 150).read())
    assert {key[:3] for key in shown if key[3] == 1} == {(uuid_of(0), -1, -1), (uuid_of(1), -1, -1)}
    assert shown[uuid_of(0), -1, -1, 1] == "570.133.20"


def test_fields_named_twice_are_read_once(stage_of):
    stage = stage_of(document(board(0)))
    assert wanted(150) == wanted(150, 150)[:1]
    assert of_board(stage.source(150, 150).read()) == {150: 40}
