"""What is asked of which device."""

from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.read_plan import Request, plan
from exporter.node.devices.readings import Device, WantedField

POWER = WantedField(155, "float", "board", "basic")
DRIVER = WantedField(1, "string", "system", "basic")
MEMORY = WantedField(252, "int", "instance", "basic")
ACTIVE = WantedField(1001, "float", "instance", "profiling")
DRAM = WantedField(1005, "float", "instance", "profiling")
PCIE = WantedField(1009, "int", "board", "profiling")
XID = WantedField(230, "int", "board", "event")
EVERY = (POWER, DRIVER, MEMORY, ACTIVE, DRAM, PCIE, XID)


def device(uuid, gi=-1, ci=-1):
    return Device(uuid, 0, "00000000:07:00.0", 0, "NVIDIA H100", gi=gi, ci=ci, profile="1g.10gb" if gi >= 0 else "")


def test_a_board_without_instances_is_asked_for_every_field_in_three_watch_groups():
    assert plan([device("GPU-a"), device("GPU-b")], EVERY) == (
        Request("board", "basic", (0, 1), (155, 1, 252)),
        Request("board", "profiling", (0, 1), (1001, 1005, 1009)),
        Request("board", "event", (0, 1), (230,)),
    )


def test_a_board_with_instances_keeps_what_belongs_to_the_board_and_leaves_the_rest_to_them():
    assert plan([device("GPU-a"), device("GPU-a", 1), device("GPU-a", 2), device("GPU-b")], EVERY) == (
        Request("board", "basic", (3,), (155, 1, 252)),
        Request("board", "profiling", (3,), (1001, 1005, 1009)),
        Request("board", "event", (3,), (230,)),
        Request("mig_board", "basic", (0,), (155, 1)),
        Request("mig_board", "profiling", (0,), (1009,)),
        Request("mig_board", "event", (0,), (230,)),
        Request("instance", "basic", (1, 2), (252,)),
        Request("instance", "profiling", (1, 2), (1001, 1005)),
    )


def test_a_shared_gpu_instance_keeps_memory_and_dram_and_its_compute_instances_have_the_activity():
    inventory = [device("GPU-a"), device("GPU-a", 1), device("GPU-a", 1, 0), device("GPU-a", 1, 1)]
    assert plan(inventory, (MEMORY, ACTIVE, DRAM)) == (
        Request("shared_instance", "basic", (1,), (252,)),
        Request("shared_instance", "profiling", (1,), (1005,)),
        Request("compute_instance", "profiling", (2, 3), (1001,)),
    )


def test_a_field_that_the_file_spells_twice_is_asked_once():
    assert plan([device("GPU-a")], (POWER, MEMORY, POWER)) == (Request("board", "basic", (0,), (155, 252)),)


def test_nothing_is_asked_without_devices_or_without_fields():
    assert plan([], EVERY) == ()
    assert plan([device("GPU-a")], ()) == ()


devices = st.builds(device, st.sampled_from(["GPU-a", "GPU-b"]), st.integers(-1, 2), st.integers(-1, 2))


@given(st.lists(devices, max_size=12, unique=True), st.lists(st.sampled_from(EVERY), max_size=9))
def test_no_pair_is_asked_twice_and_no_board_quantity_of_an_instance(inventory, fields):
    requests = plan(inventory, fields)
    pairs = [(d, f) for request in requests for d in request.devices for f in request.fields]
    assert len(pairs) == len(set(pairs))
    assert all(request.devices and request.fields for request in requests)
    board_fields = {field.id for field in EVERY if field.scope != "instance"}
    assert not any(inventory[d].gi >= 0 and f in board_fields for d, f in pairs)
    for index, one in enumerate(inventory):
        if one.gi < 0 and one.ci < 0:
            assert {f for d, f in pairs if d == index} >= {field.id for field in fields} & board_fields
