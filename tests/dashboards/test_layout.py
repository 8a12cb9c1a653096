"""The positions and the ids of panels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.layout import COLUMNS, GridBox, below, flow, panel_id

SIZES = st.lists(st.tuples(st.integers(1, COLUMNS), st.integers(1, 12)), max_size=40)


def overlap(one, other):
    return (
        one.x < other.x + other.w and other.x < one.x + one.w and one.y < other.y + other.h and other.y < one.y + one.h
    )


def test_a_full_line_is_followed_by_the_next_one():
    assert flow([(12, 4), (12, 8), (6, 2)], top=1) == [GridBox(0, 1, 12, 4), GridBox(12, 1, 12, 8), GridBox(0, 9, 6, 2)]


@given(SIZES, st.integers(0, 100))
def test_boxes_stay_on_the_grid_and_never_overlap(sizes, top):
    boxes = flow(sizes, top)
    assert [(box.w, box.h) for box in boxes] == sizes
    assert all(box.x >= 0 and box.x + box.w <= COLUMNS and top <= box.y < below(boxes, top) for box in boxes)
    assert not any(overlap(one, other) for i, one in enumerate(boxes) for other in boxes[:i])


@pytest.mark.parametrize("size", [(25, 1), (0, 1), (1, 0)])
def test_a_panel_that_does_not_fit_raises_an_error_with_its_size(size):
    with pytest.raises(ValueError, match=f"{size[0]} by {size[1]} does not fit"):
        flow([size], 0)


def test_no_box_takes_no_space():
    assert below([], 7) == 7


def test_an_id_depends_on_the_title_alone():
    assert panel_id("Power") == panel_id("Power") != panel_id("Power per node")
    assert 1 <= panel_id("Power") <= 1_000_000
