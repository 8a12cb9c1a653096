"""Decoding of records made by hand: values that the library should not return and that must not be exposed."""

import math
import struct
import time

import pytest

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.records import RecordBuffer, RecordReader
from exporter.node.dcgm.native.values import checked_raw, number_reason
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.validity import age_limit
from exporter.source import SourceError

NOW = 1_800_000_000_000_000
HEAD = struct.Struct("<IIIHHiIq")
INT = WantedField(150, "int", "gpu", "basic")
FLOAT = WantedField(155, "float", "gpu", "basic")
TEXT = WantedField(53, "string", "gpu", "basic")
ENTITIES = ((1, 0), (1, 3))


def record(field, value, kind=1, entity=0, *, status=0, timestamp=NOW, type_=None, version=layout.VALUE_VERSION):
    raw = {int: "<q", float: "<d"}.get(type(value))
    body = struct.pack(raw, value) if raw else value.encode() + b"\0"
    type_ = type_ or {int: "i", float: "d", str: "s"}[type(value)]
    return (HEAD.pack(version, kind, entity, field, ord(type_), status, 0, timestamp) + body).ljust(4128, b"\xaa")


def decode(records, fields=(INT, FLOAT), entities=ENTITIES, interval=1.0):
    buffer = RecordBuffer(len(records))
    reader = RecordReader(buffer, entities, fields, interval)
    buffer.memory[:] = b"".join(records)
    return reader.decode(NOW)


def good(order=(0, 1, 2, 3)):
    records = [record(150, 40), record(155, 70.5), record(150, 41, entity=3), record(155, 71.5, entity=3)]
    return [records[position] for position in order]


def test_records_become_columns():
    decoded = decode(good())
    assert decoded.columns == [(40, 41), (70.5, 71.5)]
    assert not decoded.rejected
    assert not decoded.suspect


def test_records_in_another_order_are_sorted_into_their_columns():
    assert decode(good((2, 0, 3, 1))).columns == [(40, 41), (70.5, 71.5)]


@pytest.mark.parametrize(
    "wrong",
    [
        record(150, 40, version=4120 | 1 << 24),
        record(150, 40, kind=4),
        record(150, 40, entity=1),
        record(151, 40),
        bytes(4128),
    ],
)
def test_a_record_that_was_not_asked_for_is_never_decoded(wrong):
    with pytest.raises(SourceError) as caught:
        decode([wrong, *good()[1:]])
    assert caught.value.reason == "layout_mismatch"


def one(field, value, **more):
    decoded = decode([record(field.id, value, **more)], (field,), ((1, 0),))
    return decoded.columns[0][0], dict(decoded.rejected)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "blank"),
        (math.inf, "blank"),
        (2.0**47, "blank"),
        (2.0**47 + 2, "not_supported"),
        (0x7FFFFFFFFFFFFFF0, "blank"),
        (0x7FFFFFFFFFFFFFF3, "no_permission"),
        (0x7FFFFFFFFFFFFFFF, "blank"),
        ("<<<NULL>>>", "blank"),
        ("<<<SOMETHING NEW>>>", "blank"),
        ("70 W", "blank"),
    ],
)
def test_what_is_no_number_is_rejected_whatever_the_type_of_the_record(value, reason):
    assert one(FLOAT, value) == (None, {(155, reason): 1})


@pytest.mark.parametrize("value", [2**47, 2**47 + 1, 0x7FFFFFF0, 0x7FFFFFFFFFFFFFEF, -1, 0])
def test_blank_values_of_other_types_are_values_of_a_64_bit_integer(value):
    assert one(INT, value) == (value, {})


UTILIZATION = WantedField(203, "int", "gpu", "basic", high=100, low=0)
SHARE = WantedField(254, "float", "gpu", "basic", high=1, low=0)


@pytest.mark.parametrize(
    ("field", "value"), [(UTILIZATION, -1), (UTILIZATION, 101), (SHARE, -0.01), (SHARE, 1.01), (FLOAT, -math.inf)]
)
def test_a_number_that_its_field_cannot_have_is_out_of_range(field, value):
    assert one(field, value) == (None, {(field.id, "out_of_range"): 1})


def test_a_number_below_the_range_costs_none_of_its_column():
    records = [record(203, 7), record(203, -1, entity=3)]
    decoded = decode(records, (UTILIZATION,))
    assert decoded.columns == [(7, None)]
    assert decoded.rejected == {(203, "out_of_range"): 1}


def test_text_ends_at_its_nul_and_invalid_bytes_are_replaced():
    assert one(TEXT, "1650\0rest")[0] == "1650"
    assert one(TEXT, "") == (None, {(53, "blank"): 1})
    broken = bytearray(record(53, "ab"))
    broken[32] = 0xFF
    decoded = decode([bytes(broken)], (TEXT,), ((1, 0),))
    assert decoded.columns[0][0] == "\ufffdb"


def test_a_blob_is_not_supported():
    assert one(INT, 5, type_="b") == (None, {(150, "not_supported"): 1})


def test_a_timestamp_far_in_the_future_is_stale_like_an_old_one():
    assert one(INT, 5, timestamp=NOW + 4_000_000)[0] == 5
    assert one(INT, 5, timestamp=NOW + 6_000_000) == (None, {(150, "stale"): 1})
    assert one(INT, 5, timestamp=NOW - 6_000_000) == (None, {(150, "stale"): 1})


def test_one_rejected_value_does_not_affect_the_others():
    records = good()
    records[2] = record(150, 0x7FFFFFFFFFFFFFF2, entity=3)
    decoded = decode(records)
    assert decoded.columns == [(40, None), (70.5, 71.5)]
    assert decoded.rejected == {(150, "not_supported"): 1}


@pytest.mark.parametrize("status", [-15, -16])
def test_a_read_with_an_unwatched_or_stale_value_is_suspect(status):
    records = good()
    records[0] = record(150, 40, status=status)
    assert decode(records).suspect


def test_values_of_a_lost_gpu_are_missing_but_not_counted_as_rejected():
    records = good()
    records[0] = record(150, 40, status=-18)
    decoded = decode(records)
    assert decoded.columns[0] == (None, 41)
    assert not decoded.rejected


def test_age_limits_follow_the_interval_and_the_kind_of_field():
    assert age_limit(INT, 1.0) == 5.0
    assert age_limit(INT, 30.0) == 90.0
    assert age_limit(WantedField(311, "int", "gpu", "basic"), 1.0) == 120.0
    assert age_limit(WantedField(230, "int", "gpu", "event"), 1.0) == 300.0


def test_a_value_above_the_limit_of_its_field_is_out_of_range_and_one_at_the_limit_is_not():
    field = WantedField(203, "int", "gpu", "basic", 100)
    assert checked_raw(101, field) == (None, "out_of_range")
    assert checked_raw(100, field) == (100, None)
    assert number_reason(5, layout.INT64_BLANK) is None


@pytest.mark.parametrize(("devices", "budget"), [(8, 0.002), (56, 0.010)])
def test_decoding_is_cheap(devices, budget):
    fields = [WantedField(number, "int", "gpu", "basic") for number in range(40)]
    entities = [(1, number) for number in range(devices)]
    buffer = RecordBuffer(devices * 40)
    reader = RecordReader(buffer, entities, fields, 1.0)
    buffer.memory[:] = b"".join(record(f, f * 3, entity=e) for e in range(devices) for f in range(40))
    best = min(timed(reader) for _ in range(20))
    print(f"{devices} x 40 samples decoded in {best * 1000:.3f} ms")
    assert best < budget


def timed(reader):
    began = time.thread_time()  # of this thread alone: other work of the machine does not count
    reader.decode(NOW)
    return time.thread_time() - began
