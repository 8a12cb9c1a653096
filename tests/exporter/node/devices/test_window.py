"""The sliding window: what it counts at its ends, that it forgets, and that its memory is bounded."""

import pytest

from exporter.node.devices.computed.window import MOST_PARTS, Window


@pytest.mark.parametrize(("now", "counts"), [(9.0, {"a": 3, "b": 1}), (10.0, {"a": 2, "b": 1}), (11.0, {}), (19.0, {})])
def test_what_came_at_the_beginning_of_the_window_is_outside_of_it(now, counts):
    window = Window(9.0)
    window.add("a", 1.0)
    window.add("b", 1.5)
    window.add("a", 2.0, count=2)
    assert window.counts(now) == counts


def test_what_is_forgotten_takes_no_memory():
    window = Window(2.0)
    for at in range(10):
        window.add("a", float(at))
    assert len(window) == 2
    assert window.counts(9.0) == {"a": 2}
    assert window.counts(20.0) == {}
    assert len(window) == 0


def test_an_hour_at_the_shortest_interval_is_bounded_and_counted_to_a_600th_of_the_window():
    window = Window(3600.0)
    for sample in range(2 * 36_000):
        window.add(sample % 3, sample / 10)
    assert len(window) <= MOST_PARTS + 1
    assert window.counts(7200.0).total() == pytest.approx(36_000, abs=60)


def test_what_comes_out_of_order_joins_the_latest_part():
    window = Window(300.0)
    window.add("a", 100.0)
    window.add("b", 50.0)
    assert len(window) == 1
    assert window.counts(399.0) == {"a": 1, "b": 1}
    assert window.counts(400.0) == {}
