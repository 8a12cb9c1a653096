"""Which values are exposed: age limits, ranges, and rejections of event fields that count as none."""

import math

import pytest

from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.field import fields, fields_by_name
from exporter.node.devices.fields.validity import (
    INFOROM_FIELDS,
    MAX_AGE_INTERVALS,
    MIN_SECONDS,
    age_limit,
    before_first_event,
    checked,
    in_range,
    readings_age_limit,
    rejection_to_count,
    too_old,
)
from exporter.node.devices.readings.readings import RejectionReason

TEMPERATURE = WantedField(150, "int", "gpu", "basic")
ACTIVITY = WantedField(1001, "float", "instance", "profiling", high=1.0, low=0.0)
RETIRED_PAGES = WantedField(390, "int", "gpu", "basic")
XID = WantedField(230, "int", "gpu", "event")


@pytest.mark.parametrize(
    ("wanted", "interval", "seconds"),
    [
        (TEMPERATURE, 10.0, 30.0),
        (TEMPERATURE, 0.5, 5.0),
        (ACTIVITY, 10.0, 30.0),
        (RETIRED_PAGES, 10.0, 120.0),
        (RETIRED_PAGES, 60.0, 180.0),
        (XID, 10.0, 300.0),
        (XID, 200.0, 600.0),
    ],
)
def test_a_sample_is_stale_after_three_intervals_or_the_minimum_of_its_field(wanted, interval, seconds):
    assert age_limit(wanted, interval) == seconds


@pytest.mark.parametrize(("interval", "seconds"), [(0.1, 5.0), (1.0, 5.0), (30.0, 90.0)])
def test_readings_are_too_old_after_three_intervals_or_five_seconds(interval, seconds):
    assert readings_age_limit(interval) == seconds


@pytest.mark.parametrize(
    "name",
    [
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "DCGM_FI_DEV_RETIRED_SBE",
        "DCGM_FI_DEV_RETIRED_DBE",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    ],
)
def test_ecc_counters_retired_pages_and_remapped_rows_are_kept_by_the_inforom(name):
    assert fields_by_name()[name].id in INFOROM_FIELDS


@pytest.mark.parametrize("name", ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"])
def test_other_quantities_are_not_kept_by_the_inforom(name):
    assert fields_by_name()[name].id not in INFOROM_FIELDS


def test_the_meaning_of_stale_has_the_limits():
    assert MAX_AGE_INTERVALS == 3
    assert f"older than three intervals (at least {MIN_SECONDS:.0f} s)" in RejectionReason.STALE.meaning


def test_a_value_up_to_the_highest_possible_one_is_in_range():
    assert in_range(0, ACTIVITY)
    assert in_range(1.0, ACTIVITY)
    assert not in_range(1.0001, ACTIVITY)
    assert in_range(1e18, TEMPERATURE)


def test_a_value_down_to_the_smallest_possible_one_is_in_range():
    assert in_range(-0.0, ACTIVITY)
    assert not in_range(-0.0001, ACTIVITY)
    assert in_range(-1e18, TEMPERATURE)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_no_field_is_infinite(value):
    assert checked(value, TEMPERATURE) == (None, RejectionReason.OUT_OF_RANGE)


ALL_32_BITS = 4294967295
NUMBERS = [field for field in fields().values() if field.kind in ("int", "float")]
SIXTY_FOUR_BITS = (64, *range(70, 74), *range(86, 90))
BELOW_ZERO = {
    **{field.id: -60 for field in NUMBERS if field.unit == "celsius"},
    **dict.fromkeys((171, *SIXTY_FOUR_BITS)),
    153: -250,
    870: -1,
}
"""The fields of numbers that can be negative, and down to where: an error code and masks have no smallest value."""


@pytest.mark.parametrize("field", NUMBERS, ids=lambda f: f.names[0])
def test_every_number_has_a_smallest_value_and_few_are_below_zero(field):
    assert field.low == BELOW_ZERO.get(field.id, 0)
    assert checked(-math.inf, field.wanted()) == (None, RejectionReason.OUT_OF_RANGE)


@pytest.mark.parametrize("field", [f for f in NUMBERS if f.unit in ("MHz", "celsius", "MiB", "watts", "percent")])
def test_a_clock_temperature_memory_power_or_share_with_all_32_bits_set_is_out_of_range(field):
    read = ALL_32_BITS / 1000 if field.unit == "watts" else ALL_32_BITS  # drivers have milliwatts
    assert checked(read, field.wanted()) == (None, RejectionReason.OUT_OF_RANGE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", -5),
        ("DCGM_FI_DEV_GPU_TEMP_LIMIT", -3),
        ("DCGM_FI_DEV_GPU_TEMP", 0),
        ("DCGM_FI_DEV_MEM_CLOCK", 14001),
        ("DCGM_FI_DEV_FB_TOTAL", 1 << 20),
        ("DCGM_FI_DEV_POWER_USAGE", 2700.5),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1.02),
        ("DCGM_FI_DEV_PSTATE", 32),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", ALL_32_BITS),
        ("DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", -1),
        ("DCGM_FI_DEV_CPU_AFFINITY_0", -(2**63)),
        ("DCGM_FI_DEV_FAN_SPEED", 105),
    ],
)
def test_what_can_be_measured_is_in_range(name, value):
    assert checked(value, fields_by_name()[name].wanted()) == (value, None)


def test_a_value_above_the_range_is_rejected_and_every_other_one_returned():
    assert checked(0.5, ACTIVITY) == (0.5, None)
    assert checked(7, ACTIVITY) == (None, RejectionReason.OUT_OF_RANGE)
    assert checked("580.1", ACTIVITY) == ("580.1", None)
    assert checked(None, ACTIVITY) == (None, None)


def test_an_event_field_without_a_recent_event_is_no_rejection():
    assert rejection_to_count(RejectionReason.BLANK, XID) is None
    assert too_old(XID) is None
    assert rejection_to_count(RejectionReason.NOT_SUPPORTED, XID) is RejectionReason.NOT_SUPPORTED
    assert rejection_to_count(RejectionReason.BLANK, TEMPERATURE) is RejectionReason.BLANK
    assert rejection_to_count(None, TEMPERATURE) is None
    assert too_old(TEMPERATURE) is RejectionReason.STALE


def test_an_event_field_that_the_library_calls_stale_is_rejected():
    assert rejection_to_count(RejectionReason.STALE, XID) is RejectionReason.STALE


def test_before_its_first_event_only_an_xid_has_a_value():
    assert before_first_event(XID) == 0
    assert before_first_event(fields()[6].wanted()) is None
