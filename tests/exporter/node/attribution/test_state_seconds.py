"""For how long each device was in which state: only observed time counts, and each second in one state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.recorded.thresholds import IDLE
from exporter.node.attribution.allocation import Allocation
from exporter.node.attribution.matching.attribute import AllocationState, attribute
from exporter.node.attribution.series.state_seconds import StateSeconds, device_state
from exporter.node.devices.computed.device_state import IDLE_BELOW, DeviceState, busy_ratios
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields.read_plan import device_levels
from exporter.node.state_file.content import DeviceSeconds
from tests.clock import Clock

INTERVAL = 30.0
ONE, TWO = (Device(f"GPU-{n}", n, f"00000000:0{n}:00.0", n, "NVIDIA H100", mig_enabled=False) for n in (1, 2))
ALONE = (Allocation("team", "train", "main", "nvidia.com/gpu", "GPU-1"),)
SHARED = tuple(Allocation("team", f"pod-{n}", "main", "nvidia.com/gpu", f"GPU-1::{n}") for n in range(2))


def instance(gi, ci=-1, profile="1g.10gb"):
    uuids = (f"MIG-{gi}-{max(ci, 0)}",)
    return Device("GPU-1", 1, ONE.pci_bus_id, 1, "NVIDIA H100", gi, ci, profile, uuids, mig_enabled=True)


def engine(*values):
    """Samples of the field 1001 by position of the device; None for a device without one."""
    found = [(position, value) for position, value in enumerate(values) if value is not None]
    return {1001: [(tuple(p for p, _ in found), tuple(v for _, v in found))]}


class Counting:
    """A StateSeconds with a clock that moves one interval with every collection."""

    def __init__(self, before=(), node=""):
        self.clock = Clock()
        self.counting = StateSeconds(node, INTERVAL, before, self.clock)
        self.family = None

    def collect(self, *devices, allocations=(), samples=None, down=(), after=INTERVAL):
        self.clock.now += after
        attribution = attribute(devices, allocations, down=down)
        busy = busy_ratios(device_levels(devices), samples or {})
        self.family = self.counting.count(attribution, busy, down)

    def seconds(self, uuid="GPU-1", gi=-1, ci=-1):
        """The states of one device with more than no time; None where it has no series."""
        found = [
            (dict(labels.pairs), value)
            for labels, value in self.family.samples
            if dict(labels.pairs)["UUID"] == uuid
            and (int(dict(labels.pairs).get("GPU_I_ID", -1)), int(dict(labels.pairs).get("GPU_CI_ID", -1))) == (gi, ci)
        ]
        assert len(found) in {0, len(DeviceState)}
        return {labels["state"]: value for labels, value in found if value} if found else None


def test_the_idle_threshold_is_that_of_the_rules():
    assert IDLE_BELOW == IDLE


@pytest.mark.parametrize(
    ("allocation", "busy", "state"),
    [
        (AllocationState(pods=0), 0.9, "unallocated"),
        (AllocationState(sharing="exclusive", pods=1), 0.9, "busy"),
        (AllocationState(sharing="exclusive", pods=1), 0.01, "busy"),
        (AllocationState(sharing="exclusive", pods=1), 0.0099, "idle"),
        (AllocationState(sharing="exclusive", pods=1), 0.0, "idle"),
        (AllocationState(sharing="exclusive", pods=1), None, "unknown"),
        (AllocationState(sharing="passthrough", pods=1), None, "unknown"),
        (AllocationState(sharing="passthrough", pods=1), 0.5, "busy"),
        (AllocationState(sharing="time-slicing", pods=2), 0.5, "shared"),
        (AllocationState(sharing="mps", pods=1), None, "shared"),
        (AllocationState(sharing="fraction", pods=1), 0.0, "shared"),
        (AllocationState(sharing="fraction"), 0.5, "shared"),  # a reservation pod occupies it
        (AllocationState(sharing="unknown", pods=2), 0.5, "unknown"),
        (AllocationState(), 0.5, "unknown"),
    ],
)
def test_the_state_follows_from_the_allocation_and_for_an_exclusive_device_from_its_activity(allocation, busy, state):
    assert device_state(allocation, busy) == state


def test_a_device_has_every_state_from_its_first_collection_on_and_no_time_yet():
    counting = Counting(node="node-1")
    counting.collect(ONE, allocations=ALONE, samples=engine(0.5))
    assert counting.seconds() == {}
    labels = [dict(labels.pairs) for labels, _ in counting.family.samples]
    assert [each["state"] for each in labels] == ["busy", "idle", "unallocated", "shared", "unknown"]
    assert {each["node"] for each in labels} == {"node-1"}


def test_time_counts_for_the_state_that_the_later_collection_finds():
    counting = Counting()
    counting.collect(ONE, allocations=(), samples=engine(0.0))
    counting.collect(ONE, allocations=ALONE, samples=engine(0.5))
    counting.collect(ONE, allocations=ALONE, samples=engine(0.0), after=10)
    counting.collect(ONE, allocations=SHARED, samples=engine(0.7), after=20)
    counting.collect(ONE, allocations=(), samples=engine(0.0), after=5)
    counting.collect(ONE, allocations=None, samples=engine(0.0), after=1)
    assert counting.seconds() == {"busy": 30, "idle": 10, "shared": 20, "unallocated": 5, "unknown": 1}


def test_a_gap_of_more_than_three_intervals_counts_nothing():
    counting = Counting()
    counting.collect(ONE, samples=engine(0.0))
    counting.collect(ONE, samples=engine(0.0), after=3 * INTERVAL)
    assert counting.seconds() == {"unallocated": 3 * INTERVAL}
    counting.collect(ONE, samples=engine(0.0), after=3 * INTERVAL + 0.1)
    assert counting.seconds() == {"unallocated": 3 * INTERVAL}
    counting.collect(ONE, samples=engine(0.0))
    assert counting.seconds() == {"unallocated": 4 * INTERVAL}


def test_a_source_that_is_down_counts_nothing_until_it_was_read_twice():
    counting = Counting()
    counting.collect(ONE)
    counting.collect(ONE)
    counting.counting.interrupt()
    counting.collect(ONE, after=2 * INTERVAL)
    assert counting.seconds() == {"unallocated": INTERVAL}
    counting.collect(ONE)
    assert counting.seconds() == {"unallocated": 2 * INTERVAL}


def test_a_lost_gpu_keeps_its_seconds_and_no_time_counts_while_it_is_lost():
    counting = Counting()
    for down in ((), (), ("GPU-1",), ("GPU-1",)):
        counting.collect(ONE, TWO, down=down)
    assert (counting.seconds("GPU-1"), counting.seconds("GPU-2")) == ({"unallocated": 30}, {"unallocated": 90})
    counting.collect(ONE, TWO)
    assert counting.seconds("GPU-1") == {"unallocated": 30}
    counting.collect(ONE, TWO)
    assert counting.seconds("GPU-1") == {"unallocated": 60}


def test_a_gpu_that_was_never_read_has_no_seconds():
    counting = Counting()
    counting.collect(ONE, TWO, down=("GPU-2",))
    assert counting.seconds("GPU-2") is None


def test_a_device_that_is_gone_has_no_series_and_begins_anew_when_it_is_back():
    counting = Counting()
    counting.collect(ONE, TWO)
    counting.collect(ONE, TWO)
    counting.collect(ONE)
    assert counting.seconds("GPU-2") is None
    assert [each.uuid for each in counting.counting.counted] == ["GPU-1"]
    counting.collect(ONE, TWO)
    counting.collect(ONE, TWO, after=7)
    assert counting.seconds("GPU-2") == {"unallocated": 7}


def test_under_mig_only_devices_that_can_be_allocated_count():
    parent = Device("GPU-1", 1, ONE.pci_bus_id, 1, "NVIDIA H100", mig_enabled=True)
    devices = (parent, instance(1), instance(2), instance(2, 0), instance(2, 1))
    allocations = (Allocation("team", "train", "main", "nvidia.com/mig-1g.10gb", "MIG-1-0"),)
    counting = Counting()
    for _ in range(2):
        counting.collect(*devices, allocations=allocations, samples=engine(0.9, 0.0, None, 0.5, 0.5))
    assert counting.seconds() is None
    assert counting.seconds(gi=1) == {"idle": 30}
    assert counting.seconds(gi=2) is None
    assert (counting.seconds(gi=2, ci=0), counting.seconds(gi=2, ci=1)) == ({"unallocated": 30}, {"unallocated": 30})


def test_a_gpu_instance_that_is_made_again_with_another_profile_begins_anew():
    parent = Device("GPU-1", 1, ONE.pci_bus_id, 1, "NVIDIA H100", mig_enabled=True)
    counting = Counting()
    for _ in range(2):
        counting.collect(parent, instance(1))
    for after in (INTERVAL, 5):
        counting.collect(parent, instance(1, profile="2g.20gb"), after=after)
    assert counting.seconds(gi=1) == {"unallocated": 5}


def test_the_mig_devices_of_a_lost_gpu_keep_their_seconds_though_they_are_not_listed():
    parent = Device("GPU-1", 1, ONE.pci_bus_id, 1, "NVIDIA H100", mig_enabled=True)
    counting = Counting()
    for _ in range(2):
        counting.collect(parent, instance(1))
    counting.collect(parent, down=("GPU-1",))
    assert (counting.seconds(), counting.seconds(gi=1)) == (None, None)
    counting.collect(parent, instance(1))
    assert counting.seconds(gi=1) == {"unallocated": 30}


def test_what_was_counted_before_goes_on():
    counting = Counting()
    counting.collect(ONE, TWO)
    counting.collect(ONE, TWO)
    later = Counting(counting.counting.counted)
    later.collect(ONE, down=("GPU-1",))
    assert later.seconds() == {"unallocated": 30}
    later.collect(ONE)
    later.collect(ONE, allocations=ALONE, samples=engine(0.5), after=4)
    assert later.seconds() == {"unallocated": 30, "busy": 4}
    assert [each.uuid for each in later.counting.counted] == ["GPU-1"]


def test_a_state_that_the_file_does_not_have_begins_at_zero():
    later = Counting([DeviceSeconds("GPU-1", -1, -1, "", {DeviceState.BUSY: 3.5})])
    later.collect(ONE)
    assert later.seconds() == {"busy": 3.5}


def test_equal_inputs_use_the_same_labels_again():
    counting = Counting()
    counting.collect(ONE)
    first = [id(labels) for labels, _ in counting.family.samples]
    counting.collect(ONE)
    assert [id(labels) for labels, _ in counting.family.samples] == first


COLLECTION = st.tuples(
    st.sampled_from([0.0, 0.5, 30.0, 89.0, 91.0, 4000.0]),
    st.sampled_from([(), None, ALONE, SHARED]),
    st.sampled_from([None, 0.0, 0.5]),
    st.sampled_from(["read", "lost", "interrupted"]),
)


@given(st.lists(COLLECTION, max_size=20))
def test_the_states_of_a_device_never_add_up_to_more_than_the_time_and_never_go_back(collections):
    counting, began, before = Counting(), None, dict.fromkeys(DeviceState, 0.0)
    for after, allocations, busy, what in collections:
        if what == "interrupted":
            counting.clock.now += after
            counting.counting.interrupt()
            continue
        down = ("GPU-1",) if what == "lost" else ()
        counting.collect(ONE, allocations=allocations, samples=engine(busy), down=down, after=after)
        began = counting.clock.now if began is None else began
        found = dict.fromkeys(DeviceState, 0.0) | (counting.seconds() or {})
        assert all(found[state] >= before[state] for state in DeviceState)
        assert sum(found.values()) <= counting.clock.now - began + 1e-6
        assert sum(found[state] > before[state] for state in DeviceState) <= 1
        before = found
