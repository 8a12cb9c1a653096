"""The inventory: GPUs and MIG devices as NVML lists them."""

import struct

import pytest

from exporter.node.simulation.document import CallFault
from exporter.node.simulation.scenario import load, parse
from exporter.node.simulation.source import readings as simulated
from tests.exporter.node.nvml.fixture import config, samples, with_events
from tests.fakes.table_bytes import HEADER, INSTANCE


def by_instance(readings):
    """Return the devices of the first GPU by (GPU instance id, compute instance id)."""
    return {(device.gi, device.ci): device for device in readings.inventory if device.index == 0}


def test_a_gpu_instance_has_its_gpu_its_profile_and_the_uuids_inside_it(scenario_table, open_source):
    scenario_table("mig")
    gpu = load("mig").document.devices[0]
    devices = by_instance(open_source(250).read())
    for instance in gpu.instances:
        device = devices[instance.gi, -1]
        assert (device.uuid, device.profile, device.index) == (gpu.uuid, instance.profile, gpu.index)
        assert device.mig_uuids == tuple(each.uuid for each in instance.compute)
        assert device.mig_enabled


def test_only_compute_instances_that_share_a_gpu_instance_are_devices_of_their_own(scenario_table, open_source):
    scenario_table("mig")
    gpu = load("mig").document.devices[0]
    shared = {(i.gi, each.ci) for i in gpu.instances if len(i.compute) > 1 for each in i.compute}
    devices = by_instance(open_source(250).read())
    assert {key for key in devices if key[1] >= 0} == shared != set()
    for instance in gpu.instances:
        for each in instance.compute if len(instance.compute) > 1 else ():
            device = devices[instance.gi, each.ci]
            assert (device.profile, device.mig_uuids) == (each.profile, (each.uuid,))


def test_the_framebuffer_of_a_shared_gpu_instance_is_read_once(scenario_table, open_source):
    scenario_table("mig")
    readings = open_source(250, 252).read()
    assert all(ci == -1 for (_, _, ci, _) in samples(readings))
    assert None not in samples(readings).values()


def test_a_hole_in_the_indexes_of_mig_devices_hides_nothing(scenario_table, open_source):
    table = scenario_table("mig")
    before = open_source(250).read().inventory
    raw = bytearray(table.path.read_bytes())
    header = HEADER.unpack_from(raw)
    offset, count = header[12], header[13]  # the second section: instances
    for row in range(count):
        place = offset + row * INSTANCE.size + 28  # mig_index
        (index,) = struct.unpack_from("<i", raw, place)
        struct.pack_into("<i", raw, place, index + (index >= 0) + (index >= 1))
    table.path.write_bytes(raw)
    assert open_source(250).read().inventory == before


def test_a_profile_without_a_name_comes_from_slices_and_memory(scenario_table, open_source):
    table, source = scenario_table("mig"), open_source(250)
    before = source.read().inventory
    table.scenario = with_events("mig", CallFault("nvmlDeviceGetName", status=3))
    table.tick(1)
    after = source.read().inventory
    plain = [(d.gi, d.profile) for d in before if d.ci < 0]
    assert [(d.gi, d.profile) for d in after if d.ci < 0] == plain


def test_a_mig_enabled_gpu_without_instances_is_read_as_a_whole(scenario_table, open_source):
    text = """{"about": "x", "devices": [{"uuid": "GPU-1", "index": 0, "pci_bus_id": "00000000:07:00.0",
        "model": "NVIDIA H100", "memory_mib": 1000, "mig": true, "architecture": "hopper",
        "fields": {"DCGM_FI_DEV_FB_USED": 10, "DCGM_FI_DEV_FB_RESERVED": 5, "DCGM_FI_DEV_GPU_UTIL": 7}}]}"""
    table = scenario_table(parse(text, "x"))
    readings = open_source(203, 252).read()
    assert readings.inventory == simulated(table.tick(0), config(), 0.0).inventory
    assert list(samples(readings).values()) == [None, 10]


def test_a_gpu_that_may_not_be_opened_is_a_problem_of_a_source_that_is_up(scenario_table, open_source):
    scenario_table(with_events("whole", CallFault("nvmlDeviceGetUUID", status=4)))
    readings = open_source(150).read()
    assert readings.inventory == ()
    assert {reason for reason, _ in readings.problems} == {"no_permission"}


@pytest.mark.parametrize("function", ["nvmlDeviceGetSerial", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetArchitecture"])
def test_a_gpu_without_an_optional_property_is_listed(scenario_table, open_source, function):
    scenario_table(with_events("whole", CallFault(function, status=3)))
    assert len(open_source(150).read().inventory) == 8


def test_mig_devices_that_may_not_be_read_do_not_affect_their_gpu(scenario_table, open_source):
    scenario_table(with_events("mig", CallFault("nvmlDeviceGetMigDeviceHandleByIndex", status=4)))
    readings = open_source(150, 250).read()
    assert [(d.index, d.gi) for d in readings.inventory] == [(0, -1), (1, -1)]
    assert [reason for reason, _ in readings.problems] == ["mig_unreadable"]
    assert readings.down == ()
    assert None not in samples(readings).values()


def test_a_gpu_lost_while_its_mig_devices_are_listed_keeps_them(scenario_table, open_source):
    table, source = scenario_table("mig"), open_source(150)
    before = source.read().inventory
    table.scenario = with_events("mig", CallFault("nvmlDeviceGetComputeInstanceId", status=15))
    table.tick(1)
    readings = source.read()
    assert readings.inventory == before
    assert readings.down == (before[0].uuid,)
