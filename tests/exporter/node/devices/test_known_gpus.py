"""GPUs that were read once stay known, until another GPU has their place."""

from exporter.node.devices.entities.device import Device
from exporter.node.devices.readings.known_gpus import KnownGpus
from exporter.node.devices.readings.readings import Readings

FIRST, SECOND = (Device(f"GPU-{n}", n, f"00000000:0{n}:00.0", n, "NVIDIA H100") for n in (1, 2))
OTHER_IN_SECOND_PLACE = Device("GPU-3", 2, SECOND.pci_bus_id, 2, "NVIDIA H100")
ADDRESS_UNKNOWN = Device("GPU-4", 4, "", -1, "NVIDIA H100")


def readings(*devices, down=()):
    return Readings("dcgm", 0.0, devices, down=down)


def test_a_gpu_that_is_not_listed_is_added_as_down_behind_the_others():
    known = KnownGpus()
    complete = readings(FIRST, SECOND)
    assert known.completed(complete) is complete
    found = known.completed(readings(FIRST))
    assert (found.inventory, found.down, len(known)) == ((FIRST, SECOND), ("GPU-2",), 2)
    found = known.completed(readings())
    assert (found.inventory, found.down, len(known)) == ((SECOND, FIRST), ("GPU-2", "GPU-1"), 2)
    assert known.completed(complete) is complete


def test_what_the_source_says_is_down_stays_down_once():
    known = KnownGpus()
    lost = readings(FIRST, SECOND, down=("GPU-2",))
    assert known.completed(lost) is lost
    assert known.completed(readings(FIRST, down=())).down == ("GPU-2",)


def test_a_gpu_is_forgotten_when_another_one_is_at_its_address_and_not_when_that_one_is_lost_again():
    known = KnownGpus()
    known.completed(readings(FIRST, SECOND))
    swapped = readings(FIRST, OTHER_IN_SECOND_PLACE)
    assert known.completed(swapped) is swapped
    assert len(known) == 2
    found = known.completed(readings(FIRST))
    assert (found.inventory, len(known)) == ((FIRST, OTHER_IN_SECOND_PLACE), 2)


def test_an_unknown_address_replaces_no_gpu_and_is_replaced_by_none():
    known = KnownGpus()
    known.completed(readings(ADDRESS_UNKNOWN))
    another = Device("GPU-5", 5, "", -1, "NVIDIA H100")
    assert known.completed(readings(another)).inventory == (another, ADDRESS_UNKNOWN)


def test_only_whole_gpus_are_remembered():
    known = KnownGpus()
    instance = Device("GPU-1", 1, FIRST.pci_bus_id, 1, "NVIDIA H100", gi=3, profile="1g.10gb")
    known.completed(readings(FIRST, instance))
    assert known.completed(readings()).inventory == (FIRST,)


EIGHT = tuple(Device(f"GPU-{n}", n, f"00000000:{n:02}:00.0", n, "NVIDIA H100") for n in range(8))


def test_gpus_that_are_known_from_before_are_missing_until_they_are_listed():
    known = KnownGpus((FIRST, SECOND))
    assert known.completed(readings()).down == ("GPU-1", "GPU-2")
    assert known.completed(readings(FIRST)).down == ("GPU-2",)
    assert known.completed(readings(FIRST, SECOND)).down == ()


def test_one_of_eight_that_was_swapped_while_the_exporter_was_down_is_replaced():
    known = KnownGpus(EIGHT)
    swapped = (*EIGHT[:3], Device("GPU-new", 3, EIGHT[3].pci_bus_id, 3, "NVIDIA H100"), *EIGHT[4:])
    assert known.completed(readings(*swapped)).down == ()
    assert {gpu.uuid for gpu in known.gpus} == {gpu.uuid for gpu in swapped}


def test_a_node_that_was_rebuilt_with_four_expects_eight_until_the_others_are_forgotten():
    known = KnownGpus(EIGHT)
    four = readings(*EIGHT[:4])
    for _ in range(3):
        assert len(known.completed(four).down) == 4
        assert len(known) == 8
    known.change(EIGHT[:5], {"GPU-5", "GPU-6", "GPU-7"})
    assert known.completed(four).down == ("GPU-4",)
    known.change(EIGHT[:4], {"GPU-4"})
    assert (known.completed(four).down, len(known)) == ((), 4)


def test_a_forgotten_gpu_that_is_still_listed_is_known_all_the_same():
    known = KnownGpus()
    known.completed(readings(FIRST, SECOND))
    known.change((), {"GPU-1", "GPU-2"})
    assert known.completed(readings(FIRST, SECOND)).down == ()
    assert known.completed(readings(FIRST)).down == ("GPU-2",)


def test_a_change_adds_gpus_and_forgets_none_but_those_that_are_named():
    known = KnownGpus((FIRST,))
    known.change((SECOND,), frozenset())
    assert {gpu.uuid for gpu in known.gpus} == {"GPU-1", "GPU-2"}
