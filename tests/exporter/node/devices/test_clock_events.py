"""Clock events of one GPU: how many samples have them, and how often they begin."""

import pytest

from exporter.node.devices.computed.clock_events import REASONS, ClockEvents, active


def observed(*masks, window=300.0):
    events = ClockEvents(window)
    for at, mask in enumerate(masks):
        events.add(mask, float(at))
    return events


def test_every_bit_has_one_name_and_no_two_have_the_same_bit():
    assert sorted(REASONS.values()) == [1 << n for n in range(9)]
    assert list(active(0x44)) == ["power_cap", "hw_thermal"]
    assert list(active(0x10000)) == []


def test_samples_are_counted_and_not_transitions():
    events = observed(0x4, 0x4, 0x0, 0x44)
    assert events.samples_with(3.0) == {"power_cap": 3, "hw_thermal": 1}


@pytest.mark.parametrize(("seconds", "count"), [(4.0, 4), (3.0, 3), (1.0, 1)])
def test_a_window_has_only_the_samples_inside_it(seconds, count):
    assert observed(0x1, 0x1, 0x1, 0x1, window=seconds).samples_with(3.0) == {"gpu_idle": count}


def test_an_event_is_counted_when_it_begins_also_in_the_first_sample():
    assert observed(0x4, 0x4, 0x0, 0x4, 0x44).begun == {"power_cap": 2, "hw_thermal": 1}
