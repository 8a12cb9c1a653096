"""Boards and MIG devices as NVML lists them."""

import struct

import pytest

from exporter.node.simulation.document import Call
from exporter.node.simulation.scenario import load, parse
from exporter.node.simulation.source import readings as simulated
from tests.exporter.node.nvml.fixture import cells, config, with_events
from tests.fakes.scenario_table import HEADER, INSTANCE


def by_gi(readings):
    return {(device.gi, device.ci): device for device in readings.inventory if device.index == 0}


def test_an_instance_has_its_board_its_profile_and_the_uuids_that_mean_it(play, open_source):
    play("mig")
    board = load("mig").document.devices[0]
    devices = by_gi(open_source(250).read())
    for instance in board.instances:
        device = devices[instance.gi, -1]
        assert (device.uuid, device.profile, device.index) == (board.uuid, instance.profile, board.index)
        assert device.mig_uuids == tuple(part.uuid for part in instance.compute)
        assert device.mig_enabled


def test_only_compute_instances_that_share_are_devices_of_their_own(play, open_source):
    play("mig")
    board = load("mig").document.devices[0]
    shared = {(i.gi, part.ci) for i in board.instances if len(i.compute) > 1 for part in i.compute}
    devices = by_gi(open_source(250).read())
    assert {key for key in devices if key[1] >= 0} == shared != set()
    for instance in board.instances:
        for part in instance.compute if len(instance.compute) > 1 else ():
            device = devices[instance.gi, part.ci]
            assert (device.profile, device.mig_uuids) == (part.profile, (part.uuid,))


def test_the_framebuffer_of_a_shared_instance_is_there_once(play, open_source):
    play("mig")
    readings = open_source(250, 252).read()
    assert all(ci == -1 for (_, _, ci, _) in cells(readings))
    assert None not in cells(readings).values()


def test_a_hole_in_the_numbering_of_mig_devices_hides_nothing(play, open_source):
    player = play("mig")
    before = open_source(250).read().inventory
    table = bytearray(player.path.read_bytes())
    header = HEADER.unpack_from(table)
    offset, count = header[12], header[13]  # the second section: instances
    for row in range(count):
        place = offset + row * INSTANCE.size + 28
        (index,) = struct.unpack_from("<i", table, place)
        struct.pack_into("<i", table, place, index + (index >= 0) + (index >= 1))
    player.path.write_bytes(table)
    assert open_source(250).read().inventory == before


def test_a_profile_without_a_name_comes_from_slices_and_memory(play, open_source):
    player, source = play("mig"), open_source(250)
    before = source.read().inventory
    player.scenario = with_events("mig", Call("nvmlDeviceGetName", status=3))
    player.tick(1)
    after = source.read().inventory
    plain = [(d.gi, d.profile) for d in before if d.ci < 0]
    assert [(d.gi, d.profile) for d in after if d.ci < 0] == plain


def test_a_board_in_mig_mode_without_instances_is_read_as_a_whole(play, open_source):
    text = """{"about": "x", "devices": [{"uuid": "GPU-1", "index": 0, "pci_bus_id": "00000000:07:00.0",
        "model": "NVIDIA H100", "memory_mib": 1000, "mig": true, "architecture": "hopper",
        "fields": {"DCGM_FI_DEV_FB_USED": 10, "DCGM_FI_DEV_FB_RESERVED": 5, "DCGM_FI_DEV_GPU_UTIL": 7}}]}"""
    player = play(parse(text, "x"))
    readings = open_source(203, 252).read()
    assert readings.inventory == simulated(player.tick(0), config(), 0.0).inventory
    assert list(cells(readings).values()) == [None, 10]


def test_a_board_that_may_not_be_opened_is_a_problem_and_not_the_end(play, open_source):
    play(with_events("whole", Call("nvmlDeviceGetUUID", status=4)))
    readings = open_source(150).read()
    assert readings.inventory == ()
    assert {reason for reason, _ in readings.problems} == {"no_permission"}


@pytest.mark.parametrize("function", ["nvmlDeviceGetSerial", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetArchitecture"])
def test_a_board_may_do_without_a_fact(play, open_source, function):
    play(with_events("whole", Call(function, status=3)))
    assert len(open_source(150).read().inventory) == 8


def test_mig_devices_that_may_not_be_read_cost_only_themselves(play, open_source):
    play(with_events("mig", Call("nvmlDeviceGetMigDeviceHandleByIndex", status=4)))
    readings = open_source(150, 250).read()
    assert [(d.index, d.gi) for d in readings.inventory] == [(0, -1), (1, -1)]
    assert [reason for reason, _ in readings.problems] == ["mig_unreadable"]
    assert readings.down == ()
    assert None not in cells(readings).values()


def test_a_board_lost_while_its_mig_devices_are_listed_keeps_them(play, open_source):
    player, source = play("mig"), open_source(150)
    before = source.read().inventory
    player.scenario = with_events("mig", Call("nvmlDeviceGetComputeInstanceId", status=15))
    player.tick(1)
    readings = source.read()
    assert readings.inventory == before
    assert readings.down == (before[0].uuid,)
