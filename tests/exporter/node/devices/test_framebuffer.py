"""A framebuffer of 0 MiB is none: neither its size nor what is free, in use or reserved of it is a number."""

import pytest

from exporter.node.devices.fields.field_ids import (
    FB_FREE,
    FB_RESERVED,
    FB_TOTAL,
    FB_USED,
    FB_USED_RATIO,
    FRAMEBUFFER,
    GPU_TEMP,
)
from exporter.node.devices.fields.framebuffer import framebuffer_positions, without_absent_framebuffer

HEALTHY = {FB_TOTAL: 81920, FB_FREE: 80000, FB_USED: 0, FB_RESERVED: 1920, FB_USED_RATIO: 0.0}
NONE = dict.fromkeys(FRAMEBUFFER, 0) | {FB_USED_RATIO: None}


def kept(fields, *devices):
    """What is kept of these devices' values of these fields, by device, and what was removed."""
    columns = [tuple(device[field] for device in devices) for field in fields]
    found, removed = without_absent_framebuffer(columns, framebuffer_positions(fields))
    return [dict(zip(fields, values, strict=True)) for values in zip(*found, strict=True)], dict(removed)


def test_a_device_with_a_size_of_0_has_no_amount_and_the_others_have_theirs():
    fields = (GPU_TEMP, *FRAMEBUFFER)
    found, removed = kept(fields, {GPU_TEMP: 40} | HEALTHY, {GPU_TEMP: 0} | NONE)
    assert found == [{GPU_TEMP: 40} | HEALTHY, {GPU_TEMP: 0} | dict.fromkeys(FRAMEBUFFER)]
    assert removed == {FB_TOTAL: 1, FB_FREE: 1, FB_USED: 1, FB_RESERVED: 1, FB_USED_RATIO: 0}


@pytest.mark.parametrize("fields", [(FB_FREE, FB_USED), (FB_USED, FB_RESERVED, FB_FREE)])
def test_where_the_size_is_not_read_nothing_free_and_nothing_in_use_is_a_size_of_0(fields):
    found, _ = kept(fields, HEALTHY, NONE)
    assert found == [{field: HEALTHY[field] for field in fields}, dict.fromkeys(fields)]


@pytest.mark.parametrize(
    "values",
    [
        HEALTHY,
        HEALTHY | {FB_FREE: 0, FB_USED: 80000},
        HEALTHY | {FB_FREE: 0, FB_RESERVED: 81920},
        HEALTHY | {FB_TOTAL: None},
        dict.fromkeys(FRAMEBUFFER),
    ],
    ids=["nothing in use", "nothing free", "all reserved", "size unknown", "nothing known"],
)
def test_an_amount_of_0_of_a_framebuffer_that_is_there_is_kept(values):
    assert kept(FRAMEBUFFER, values) == ([values], {})


def test_one_amount_alone_says_nothing_about_the_size():
    assert kept((FB_USED,), NONE) == ([{FB_USED: 0}], {})
