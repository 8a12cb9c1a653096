"""The read plan: which field is read of which device."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.read_plan import ReadRequest, plan

POWER = WantedField(155, "float", "gpu", "basic")
DRIVER = WantedField(1, "string", "system", "basic")
MEMORY = WantedField(252, "int", "instance", "basic")
ACTIVE = WantedField(1001, "float", "instance", "profiling")
DRAM = WantedField(1005, "float", "instance", "profiling")
PCIE = WantedField(1009, "int", "gpu", "profiling")
XID = WantedField(230, "int", "gpu", "event")
EVERY = (POWER, DRIVER, MEMORY, ACTIVE, DRAM, PCIE, XID)


def device(uuid, gi=-1, ci=-1):
    return Device(uuid, 0, "00000000:07:00.0", 0, "NVIDIA H100", gi=gi, ci=ci, profile="1g.10gb" if gi >= 0 else "")


def test_every_field_is_read_of_a_gpu_without_mig_devices_by_watch_group():
    assert plan([device("GPU-a"), device("GPU-b")], EVERY) == (
        ReadRequest("gpu", "basic", (0, 1), (155, 1, 252)),
        ReadRequest("gpu", "profiling", (0, 1), (1001, 1005, 1009)),
        ReadRequest("gpu", "event", (0, 1), (230,)),
    )


def test_of_a_gpu_with_mig_devices_only_gpu_quantities_are_read_and_the_others_of_its_mig_devices():
    assert plan([device("GPU-a"), device("GPU-a", 1), device("GPU-a", 2), device("GPU-b")], EVERY) == (
        ReadRequest("gpu", "basic", (3,), (155, 1, 252)),
        ReadRequest("gpu", "profiling", (3,), (1001, 1005, 1009)),
        ReadRequest("gpu", "event", (3,), (230,)),
        ReadRequest("mig_enabled_gpu", "basic", (0,), (155, 1)),
        ReadRequest("mig_enabled_gpu", "profiling", (0,), (1009,)),
        ReadRequest("mig_enabled_gpu", "event", (0,), (230,)),
        ReadRequest("instance", "basic", (1, 2), (252,)),
        ReadRequest("instance", "profiling", (1, 2), (1001, 1005)),
    )


def test_memory_is_read_of_a_shared_gpu_instance_and_engine_activity_of_its_compute_instances():
    inventory = [device("GPU-a"), device("GPU-a", 1), device("GPU-a", 1, 0), device("GPU-a", 1, 1)]
    assert plan(inventory, (MEMORY, ACTIVE, DRAM)) == (
        ReadRequest("shared_instance", "basic", (1,), (252,)),
        ReadRequest("shared_instance", "profiling", (1,), (1005,)),
        ReadRequest("compute_instance", "profiling", (2, 3), (1001,)),
    )


def test_a_field_with_two_spellings_in_the_file_is_read_once():
    assert plan([device("GPU-a")], (POWER, MEMORY, POWER)) == (ReadRequest("gpu", "basic", (0,), (155, 252)),)


def test_nothing_is_read_without_devices_or_without_fields():
    assert plan([], EVERY) == ()
    assert plan([device("GPU-a")], ()) == ()


devices = st.builds(device, st.sampled_from(["GPU-a", "GPU-b"]), st.integers(-1, 2), st.integers(-1, 2))


@given(st.lists(devices, max_size=12, unique=True), st.lists(st.sampled_from(EVERY), max_size=9))
def test_no_field_is_read_twice_of_a_device_and_no_gpu_quantity_of_a_mig_device(inventory, fields):
    requests = plan(inventory, fields)
    pairs = [(d, f) for request in requests for d in request.devices for f in request.fields]
    assert len(pairs) == len(set(pairs))
    assert all(request.devices and request.fields for request in requests)
    gpu_fields = {field.id for field in EVERY if field.scope != "instance"}
    assert not any(inventory[d].gi >= 0 and f in gpu_fields for d, f in pairs)
    for index, one in enumerate(inventory):
        if one.gi < 0 and one.ci < 0:
            assert {f for d, f in pairs if d == index} >= {field.id for field in fields} & gpu_fields
