"""Passes of the NVML source over scenarios, through the real pynvml and the compiled stand-in."""

import time
from importlib.resources import files

import msgspec
import pytest

from exporter.node.devices.counters_file import parse
from exporter.node.devices.field import fields
from exporter.node.simulation.document import Call, Cells, Lost, Mig, Xid
from exporter.node.simulation.scenario import Scenario, load
from exporter.node.simulation.source import readings as simulated
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import cells, column, config, counted, with_events

UNKNOWN_TO_NVML = {6, 170, 171, 172, 173, 175, 200, 201, 285, 450, 497, 498, 499, 526, 1080, 1084, 1091, 1092} | {
    1200, 1201, 1202, 1203, 1206, 1212, 1216, 1218, 1220, 1507,
}  # fmt: skip
"""Fields that the source never gives."""
MORE_FROM_NVML = {4, 843, 897}
"""Fields that the scenarios leave out although the stand-in's driver can tell them."""


def near(a, b):
    """Equal; power passes through milliwatts and rates through counters."""
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a == b
    return type(a) is type(b) and a == pytest.approx(b, abs=1 if isinstance(a, int) and a > 1000 else 1e-3, rel=1e-9)


def gpm_can(device, field):
    """Hopper and newer, and not inside a compute instance."""
    return fields()[field].watch != "profiling" or (device.architecture == "hopper" and device.ci < 0)


@pytest.mark.parametrize("name", ["whole", "mig", "time_sliced"])
@pytest.mark.parametrize("moment", [5, 61])
def test_the_same_scenario_gives_what_the_simulated_source_gives(play, open_source, clock, name, moment):
    player, source = play(name), open_source()
    player.tick(moment)
    source.read()
    clock.now += 1
    state = player.tick(moment)
    found, wanted = source.read(), simulated(state, config(), 0.0)
    assert found.inventory == wanted.inventory
    assert found.down == wanted.down == ()
    devices = {(d.uuid, d.gi, d.ci): d for d in wanted.inventory}
    ours = cells(found)
    assert ours.keys() == cells(wanted).keys()
    for key, value in cells(wanted).items():
        if key[3] in UNKNOWN_TO_NVML or not gpm_can(devices[key[:3]], key[3]):
            assert ours[key] is None, key
        elif key[3] not in MORE_FROM_NVML:
            assert near(ours[key], value), (key, ours[key], value)


def test_every_field_of_the_default_file_but_the_vgpu_licence_has_a_value_on_a_hopper_board(play, open_source, clock):
    text = files("exporter.node.devices").joinpath("defaults", "default-counters.csv").read_text()
    ids = [field.id for field in parse(text, "default").fields]
    player = play("whole")
    uuid = first_uuid(player)
    player.scenario = with_events("whole", Xid(uuid, 1, 31))
    source = open_source(*ids)
    source.read()
    player.tick(2)
    clock.now += 1
    first = {key[3]: value for key, value in cells(source.read()).items() if key[0] == uuid}
    assert {field for field, value in first.items() if value is None} == {526}
    assert first[230] == 31
    assert set(first) == set(ids)


GIVEN_BY_THE_BOARD = {1, 2, 4, 5, 50, 52, 53, 54, 55, 57, 63, 67, 69, 85, 94, 254}
ONE_COUNTER = {1420: 240, 1421: 242}
"""Two fields that NVML gives as one."""


def distinct(flag):
    """A value for each field that no other field has; of the flags, only this one is set."""
    values = {}
    for number, field in fields().items():
        if number in UNKNOWN_TO_NVML | GIVEN_BY_THE_BOARD or field.kind == "string":
            continue
        if field.high == 1:
            values[number] = int(number == flag)
        elif field.unit == "ratio":
            values[number] = (number - 1000) / 100
        else:
            values[number] = len(values) % 30 if field.high else 10_000 + 10 * number
    values |= {number: values[same] for number, same in ONE_COUNTER.items()}
    return {str(number): value for number, value in values.items()}


@pytest.mark.parametrize("flag", [number for number, field in fields().items() if field.high == 1 and number != 254])
def test_no_field_has_the_value_of_another(play, open_source, clock, flag):
    document = load("whole").document
    board = msgspec.structs.replace(document.devices[0], use=(), fields=distinct(flag))
    player = play(Scenario("distinct", msgspec.structs.replace(document, devices=(board,), events=())))
    source = open_source()
    source.read()
    clock.now += 1
    ours, wanted = cells(source.read()), cells(simulated(player.tick(0), config(), 0.0))
    for key, value in wanted.items():
        if key[3] not in UNKNOWN_TO_NVML | GIVEN_BY_THE_BOARD | {230, 449, 843, 897}:
            assert near(ours[key], value), (key, ours[key], value)


def first_uuid(player):
    return player.scenario.document.devices[0].uuid


def test_engine_activity_needs_two_samples(play, open_source, clock):
    play("whole")
    source = open_source(1004)
    first = source.read()
    assert set(column(first, 1004)) == {None}
    assert counted(first, 1004) == {"blank": 8}
    clock.now += 1
    assert None not in column(source.read(), 1004)


def test_samples_less_than_a_tenth_of_a_second_apart_are_not_compared(play, open_source, clock):
    play("whole")
    source = open_source(1001)
    source.read()
    clock.now += 0.05
    assert set(column(source.read(), 1001)) == {None}
    clock.now += 0.06
    assert None not in column(source.read(), 1001)


def test_with_patience_the_first_page_is_complete(play, open_source):
    play("mig")
    source = open_source(1001, 1005, clock=time.monotonic, patience=0.5)
    readings = source.read()
    devices = readings.inventory
    missing = {key for key, value in cells(readings).items() if value is None}
    assert {key[:2] for key in missing} <= {(d.uuid, d.gi) for d in devices if d.ci >= 0}


@pytest.mark.parametrize(
    ("sentinel", "reason"),
    [
        ("blank", "blank"),
        ("not_found", "not_found"),
        ("not_supported", "not_supported"),
        ("no_permission", "no_permission"),
    ],
)
def test_a_value_that_is_missing_is_absent_and_counted_by_its_reason(play, open_source, clock, sentinel, reason):
    ids = (100, 140, 150, 155, 156, 202, 203, 250, 393, 1001)
    play(with_events("whole", Cells(sentinel=sentinel)))
    source = open_source(*ids)
    source.read()
    clock.now += 1
    readings = source.read()
    assert set(cells(readings).values()) == {None}
    assert {field: counted(readings, field) for field in ids} == {field: {reason: 8} for field in ids}


def test_one_missing_value_costs_only_its_own_field(play, open_source):
    play(with_events("whole", Cells(fields=("DCGM_FI_DEV_GPU_TEMP",), sentinel="not_supported")))
    readings = open_source(100, 150, 155).read()
    assert set(column(readings, 150)) == {None}
    assert None not in column(readings, 100)
    assert None not in column(readings, 155)


def test_a_value_above_what_can_be_is_out_of_range(play, open_source):
    document = load("whole").document
    first, *others = document.devices
    first = msgspec.structs.replace(first, fields={**first.fields, "DCGM_FI_DEV_GPU_UTIL": 101})
    play(Scenario("changed", msgspec.structs.replace(document, devices=(first, *others))))
    readings = open_source(203).read()
    assert column(readings, 203)[0] is None
    assert counted(readings, 203) == {"out_of_range": 1}


@pytest.mark.parametrize("seen", ["status", "absent"])
def test_a_lost_board_goes_down_keeps_its_name_and_costs_nobody_else_anything(play, open_source, clock, seen):
    player = play("whole")
    uuid = first_uuid(player)
    player.scenario = with_events("whole", Lost(uuid, 10, seen=seen))
    source = open_source(100, 150, 230, 250, 1001)
    before = source.read()
    player.tick(11)
    clock.now += 1
    readings = source.read()
    assert readings.inventory == before.inventory
    assert readings.down == (uuid,)
    shown = cells(readings)
    assert {key[0] for key in shown} == {device.uuid for device in before.inventory} - {uuid}
    assert {key[3] for key, value in shown.items() if value is None} == {230}
    assert readings.rejections == ()


def test_a_board_that_falls_silent_in_the_middle_of_a_pass_shows_nothing_of_that_pass(play, open_source, clock):
    player, source = play("whole"), open_source(100, 1001)
    source.read()
    player.scenario = with_events("whole", Call("nvmlGpmSampleGet", status=15))
    player.tick(1)
    clock.now += 1
    readings = source.read()
    assert len(readings.down) == 8
    assert readings.blocks == ()
    player.scenario = with_events("whole")
    player.tick(2)
    clock.now += 1
    assert source.read().down == ()


def test_a_lost_board_is_looked_for_in_a_new_session_once_a_minute(play, open_source, clock):
    player = play("whole")
    uuid = first_uuid(player)
    player.scenario = with_events("whole", Lost(uuid, 10, for_=20, seen="absent"))
    source = open_source(150)
    source.read()
    player.tick(11)
    assert source.read().down == (uuid,)
    clock.now += 61
    readings = source.read()  # a session that lists seven; the eighth is remembered
    assert (len(readings.inventory), readings.down) == (8, (uuid,))
    player.tick(31)
    clock.now += 30
    assert source.read().down == (uuid,)  # it is back, but a session lists what was there when it began
    clock.now += 31
    readings = source.read()
    assert (len(readings.inventory), readings.down) == (8, ())
    assert None not in column(readings, 150)


def test_a_board_lost_before_the_start_is_told_as_a_problem(play, open_source):
    player = play("whole")
    player.scenario = with_events("whole", Lost(first_uuid(player), 0))
    player.tick(1)
    readings = open_source(150).read()
    assert len(readings.inventory) == 7
    assert [reason for reason, _ in readings.problems] == ["board_lost"]


def test_a_lost_board_that_returns_is_read_again(play, open_source, clock):
    player = play("whole")
    player.scenario = with_events("whole", Lost(first_uuid(player), 10, for_=20))
    source = open_source(150)
    source.read()
    player.tick(11)
    assert len(source.read().down) == 1
    player.tick(31)
    clock.now += 61
    readings = source.read()
    assert readings.down == ()
    assert None not in column(readings, 150)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(9, "driver_not_loaded"), (18, "driver_mismatch"), (4, "no_permission"), (10, "timeout"), (999, "failed")],
)
def test_what_keeps_the_library_from_opening_is_told_in_one_word(play, open_source, status, reason):
    play(with_events("whole", Call("nvmlInitWithFlags", status=status)))
    with pytest.raises(SourceError) as error:
        open_source(150).read()
    assert error.value.reason == reason


def test_a_driver_that_comes_later_is_found_after_a_pause(play, open_source, clock):
    player = play(with_events("whole", Call("nvmlInitWithFlags", status=9, for_=10)))
    source = open_source(150)
    for _ in range(2):
        with pytest.raises(SourceError, match="not loaded"):
            source.read()
    player.tick(11)
    with pytest.raises(SourceError, match="not loaded"):  # still within the pause
        source.read()
    clock.now += 1.5
    assert len(source.read().inventory) == 8


def test_pauses_between_attempts_grow_to_half_a_minute(play, open_source, clock):
    play(with_events("whole", Call("nvmlInitWithFlags", status=9)))
    source = open_source(150)
    waits = []
    for _ in range(7):
        with pytest.raises(SourceError):
            source.read()
        waits.append(source._session._not_before - clock.now)
        clock.now = source._session._not_before
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_a_driver_replaced_while_reading_ends_the_pass_and_says_so(play, open_source, clock):
    player, source = play("whole"), open_source(150)
    source.read()
    player.scenario = with_events("whole", Call("nvmlDeviceGetTemperatureV", status=18))
    player.tick(1)
    with pytest.raises(SourceError) as error:
        source.read()
    assert error.value.reason == "driver_mismatch"
    player.scenario = with_events("whole")
    player.tick(2)
    with pytest.raises(SourceError, match="replaced"):  # closed, and not opened again at once
        source.read()
    clock.now += 1
    assert None not in column(source.read(), 150)


def test_an_xid_is_shown_from_its_event_on_and_only_on_its_board(play, open_source):
    player = play("whole")
    uuid = first_uuid(player)
    player.scenario = with_events("whole", Xid(uuid, 10, 31), Xid(uuid, 20, 63))
    source = open_source(230)
    assert set(column(source.read(), 230)) == {None}
    player.tick(11)
    assert {key[0]: value for key, value in cells(source.read()).items() if value} == {uuid: 31}
    player.tick(12)
    assert column(source.read(), 230)[0] == 31
    player.tick(21)
    readings = source.read()
    assert {key[0]: value for key, value in cells(readings).items() if value} == {uuid: 63}
    assert readings.rejections == ()


def test_an_xid_is_news_for_five_minutes(play, open_source, clock):
    player = play("whole")
    player.scenario = with_events("whole", Xid(first_uuid(player), 10, 31))
    source = open_source(230)
    source.read()
    player.tick(11)
    source.read()
    clock.now += 300
    assert column(source.read(), 230)[0] == 31
    clock.now += 1
    readings = source.read()
    assert column(readings, 230)[0] is None
    assert readings.rejections == ()


def test_a_driver_without_boards_is_asked_again_for_them(play, open_source, clock):
    document = load("whole").document
    player = play(Scenario("none", msgspec.structs.replace(document, devices=(), events=())))
    source = open_source(150)
    assert source.read().inventory == ()
    player.scenario = load("whole")
    player.tick(1)
    assert source.read().inventory == ()
    clock.now += 61
    assert len(source.read().inventory) == 8


def test_the_xid_of_an_instance_is_shown_on_its_board(play, open_source):
    player = play("mig")
    board = player.scenario.document.devices[0]
    player.scenario = with_events("mig", Xid(f"{board.uuid}/{board.instances[0].gi}", 10, 43))
    source = open_source(230)
    source.read()
    player.tick(11)
    assert {key[:2]: value for key, value in cells(source.read()).items() if value} == {(board.uuid, -1): 43}


def test_the_xid_of_a_board_that_was_lost_with_it_is_not_forgotten(play, open_source, clock):
    player = play("whole")
    uuid = first_uuid(player)
    player.scenario = with_events("whole", Xid(uuid, 10, 79), Lost(uuid, 10, for_=20))
    source = open_source(230)
    source.read()
    player.tick(11)
    source.read()
    player.tick(31)
    clock.now += 61
    assert column(source.read(), 230)[0] == 79


def test_instances_follow_a_reconfiguration_with_the_next_pass(play, open_source, clock):
    player = play("mig")
    board = player.scenario.document.devices[0]
    changed = board.instances[:1]
    player.scenario = with_events("mig", Mig(board.uuid, 10, instances=changed))
    source = open_source(250, 1001)
    source.read()
    player.tick(11)
    clock.now += 1
    readings = source.read()
    assert [d.gi for d in readings.inventory if d.uuid == board.uuid] == [-1, changed[0].gi]
    clock.now += 1
    assert None not in column(source.read(), 1001)


def test_boards_without_gpm_say_that_activity_is_not_supported(play, open_source, clock):
    play("time_sliced")
    source = open_source(1001, 1004)
    source.read()
    clock.now += 1
    readings = source.read()
    assert counted(readings, 1004) == {"not_supported": len(readings.inventory)}


def test_one_memory_call_serves_every_field_of_the_framebuffer(play, open_source):
    play(with_events("whole", Call("nvmlDeviceGetMemoryInfo_v2", status=4)))
    readings = open_source(250, 251, 252, 253, 254, 150).read()
    assert counted(readings, 250) == counted(readings, 254) == {"no_permission": 8}
    assert None not in column(readings, 150)


def test_a_closed_source_opens_again_when_read(play, open_source):
    play("whole")
    source = open_source(150)
    source.read()
    source.close()
    source.close()
    assert None not in column(source.read(), 150)
