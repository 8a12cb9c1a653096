"""Which values are exposed: age limits, ranges, and rejections of event fields that count as none."""

import pytest

from exporter.node.devices.device_source import WantedField
from exporter.node.devices.field import fields_by_name
from exporter.node.devices.readings import RejectionReason
from exporter.node.devices.validity import (
    INFOROM_FIELDS,
    MAX_AGE_INTERVALS,
    MIN_SECONDS,
    age_limit,
    checked,
    in_range,
    rejection_to_count,
    too_old,
)

TEMPERATURE = WantedField(150, "int", "gpu", "basic")
ACTIVITY = WantedField(1001, "float", "instance", "profiling", high=1.0)
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
