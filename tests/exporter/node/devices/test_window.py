"""The sliding window: what it counts at its ends, and that it forgets."""

import pytest

from exporter.node.devices.window import Window


@pytest.mark.parametrize(("since", "counts"), [(0.0, {"a": 3, "b": 1}), (1.0, {"a": 2, "b": 1}), (2.0, {}), (9.0, {})])
def test_what_came_at_the_beginning_of_the_window_is_outside_of_it(since, counts):
    window = Window()
    window.add("a", 1.0)
    window.add("a", 2.0, count=2)
    window.add("b", 1.5)
    assert window.since(since) == counts


def test_what_is_forgotten_counts_no_longer():
    window = Window()
    for at in (1.0, 2.0, 3.0):
        window.add("a", at)
    window.forget_before(2.0)
    assert window.since(0.0) == {"a": 1}
    window.forget_before(9.0)
    assert window.since(0.0) == {}
