"""Return codes, raw values, rates from counters and GPM values: functions that call no library."""

import math

import pytest

from exporter.node.devices.fields.field import fields
from exporter.node.devices.fields.validity import checked
from exporter.node.nvml.calls.calls import CALLS
from exporter.node.nvml.calls.field_values import FIELD_VALUES, NVLINK_RATES
from exporter.node.nvml.calls.gpm import FIELDS, RATES, RATIOS, gpm_value
from exporter.node.nvml.calls.nvlink_rates import NvlinkRates
from exporter.node.nvml.native.values import GpuLostError, RejectedValue, nvml_value, raw_reason, rejected
from exporter.source import SourceError

BLANK = RejectedValue("blank")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (3, "not_supported"), (13, "not_supported"), (25, "not_supported"), (26, "not_supported"),
        (4, "no_permission"), (6, "not_found"), (2, "blank"),
        (10, "blank"), (21, "blank"), (27, "blank"), (999, "blank"),
    ],
)  # fmt: skip
def test_a_return_code_becomes_a_reason_and_never_a_number(code, reason):
    assert rejected(code) == RejectedValue(reason)


@pytest.mark.parametrize("code", [15, 16, 28])
def test_the_codes_of_a_lost_gpu_concern_the_whole_gpu(code):
    with pytest.raises(GpuLostError):
        rejected(code)


@pytest.mark.parametrize(
    ("code", "reason"),
    [(1, "not_initialized"), (9, "driver_not_loaded"), (12, "library_missing"), (18, "driver_mismatch")],
)
def test_the_codes_of_a_failed_library_concern_the_whole_source(code, reason):
    with pytest.raises(SourceError) as error:
        rejected(code)
    assert error.value.reason == reason


@pytest.mark.parametrize("raw", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, math.nan, ""])
def test_nvmls_value_not_available_nan_and_an_empty_text_are_blank(raw):
    assert raw_reason(raw) == "blank"


@pytest.mark.parametrize("raw", [math.inf, -math.inf])
def test_what_is_infinite_is_out_of_range_whatever_the_conversion(raw):
    assert raw_reason(raw) == "out_of_range"
    assert [nvml_value(field, raw) for field in (150, 155, 250)] == [RejectedValue("out_of_range")] * 3
    assert [gpm_value(field, raw) for field in (1001, 1009)] == [RejectedValue("out_of_range")] * 2


@pytest.mark.parametrize("raw", [0, -3, 0.0, 1 << 53, "text"])
def test_zero_is_a_value(raw):
    assert raw_reason(raw) is None


@pytest.mark.parametrize(
    ("field", "raw", "value"),
    [
        (155, 312_400, 312.4),
        (156, 9_007_199_254_740_993, 9_007_199_254_740_993),
        (250, 85_520_809_984, 81_559),
        (252, (1 << 20) - 1, 0),
        (150, 0, 0),
        (155, 0xFFFFFFFF, BLANK),
        (250, 0xFFFFFFFFFFFFFFFF, BLANK),
        (253, None, RejectedValue("not_supported")),
    ],
)
def test_a_raw_value_is_checked_before_it_is_converted(field, raw, value):
    assert nvml_value(field, raw) == value
    assert type(nvml_value(field, raw)) is type(value)


@pytest.mark.parametrize(
    ("field", "raw", "value"),
    [(1001, 47.5, 0.475), (1009, 1.5, 1_572_864), (1001, math.nan, BLANK), (1004, 0.0, 0.0)],
)
def test_gpm_percent_becomes_a_ratio_and_mebibytes_become_bytes(field, raw, value):
    assert gpm_value(field, raw) == value
    assert type(gpm_value(field, raw)) is type(value)


def test_a_value_above_the_largest_possible_is_out_of_range():
    assert checked(100, fields()[203].wanted()) == (100, None)
    assert checked(101, fields()[203].wanted()) == (None, "out_of_range")
    assert checked(10**12, fields()[156].wanted()) == (10**12, None)
    assert checked("x", fields()[54].wanted()) == ("x", None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (203, -1), (100, nvml_value(100, -1)), (252, nvml_value(252, -(1 << 20))), (155, nvml_value(155, -1)),
        (1004, gpm_value(1004, -1.0)), (1009, gpm_value(1009, -1.0)), (254, -0.01), (254, 1.01),
    ],
)  # fmt: skip
def test_a_value_below_the_smallest_possible_is_out_of_range(field, value):
    assert checked(value, fields()[field].wanted()) == (None, "out_of_range")


def test_every_field_is_read_in_one_way_only():
    ways = [field for call in CALLS for field in call.fields]
    ways += [*FIELD_VALUES, *NVLINK_RATES, *FIELDS]
    assert len(ways) == len(set(ways))
    assert not set(RATIOS) & set(RATES)


def test_values_have_the_type_of_their_field():
    for field in FIELDS:
        assert (fields()[field].kind == "float") == (field in RATIOS)
    for call in CALLS:
        for field in call.fields:
            kind = {"int": int, "float": float, "string": int}[fields()[field].kind]
            assert field == 254 or isinstance(nvml_value(field, 1 << 20), kind)


def test_a_rate_needs_two_counts_and_is_in_thousands_of_kibibytes_per_second():
    rates = NvlinkRates()
    assert rates.rates("g", {"tx": (0, 10), "rx": (0, 10)}, (449,)) == {449: BLANK}
    now = {"tx": (3_000_000, 2_000_010), "rx": (1_000_000, 2_000_010)}
    assert rates.rates("g", now, (449, 843, 897)) == {449: 2000, 843: 1500, 897: 500}


def test_a_counter_that_went_down_or_has_the_same_timestamp_gives_no_rate():
    rates = NvlinkRates()
    for count, stamp in ((100, 1_000_000), (50, 2_000_000), (60, 2_000_000)):
        assert rates.rates("g", {"tx": (count, stamp)}, (843,)) == {843: BLANK}
    assert rates.rates("g", {"tx": (1060, 3_000_000)}, (843,)) == {843: 1}


def test_a_gpu_without_links_has_no_rate_and_needs_two_counts_when_it_gets_some():
    rates, none = NvlinkRates(), RejectedValue("not_supported")
    rates.rates("g", {"tx": (1000, 1_000_000)}, (843,))
    assert rates.rates("g", {"tx": (none, 0)}, (843,)) == {843: none}
    assert rates.rates("g", {"tx": (9000, 3_000_000)}, (843,)) == {843: BLANK}


def test_the_counters_of_each_gpu_are_separate():
    rates = NvlinkRates()
    rates.rates("a", {"tx": (0, 0)}, (843,))
    assert rates.rates("b", {"tx": (5000, 1_000_000)}, (843,)) == {843: BLANK}
