"""Which GPU is meant by an engine id that has no UUID any more."""

from exporter.node.dcgm.entities.inventory import DescribedGpus, EngineInventory
from exporter.node.devices.entities.device import Device

GPU = 1
FIRST, SECOND = (Device(uuid, index, f"00000000:0{index}:00.0", index, "GPU") for index, uuid in enumerate("AB"))


def test_a_lost_gpu_is_the_one_that_had_its_engine_id():
    known = DescribedGpus({})
    known.remember(EngineInventory((FIRST, SECOND), ((GPU, 0), (GPU, 1)), {}, (), ()))
    assert known.unreadable(1, {"A"}) == SECOND
    assert known.unreadable(2, {"A", "B"}) is None
    assert set(known.by_uuid) == {"A", "B"}


def test_a_gpu_that_is_read_under_another_engine_id_is_not_lost_under_its_old_one():
    known = DescribedGpus({})
    known.remember(EngineInventory((FIRST,), ((GPU, 0),), {}, (), ()))
    assert known.unreadable(0, {"A"}) is None


def test_a_gpu_that_is_down_keeps_the_engine_id_under_which_it_was_read():
    known = DescribedGpus({})
    known.remember(EngineInventory((FIRST,), ((GPU, 0),), {}, (), ()))
    known.remember(EngineInventory((FIRST,), (None,), {}, ("A",), ()))
    assert known.unreadable(0, set()) == FIRST
