"""Decodes the records that one read of libdcgm wrote into memory, into columns of checked values. No I/O.

A record (dcgmFieldValue_v2) is one value of one field of one entity; a column is one field of all entities. A record
has 4,128 bytes, of which 40 matter unless its value is a text. These are copied out of all records first, so that the
large buffer is read once, and then separated by slices, each of which is one loop in C. A field whose whole column is
valid numbers of one type costs no Python per value.
"""

import ctypes
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.values import checked_raw, status_reason
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.validity import age_limit, before_first_event, in_range, rejection_to_count, too_old
from exporter.node.devices.readings.readings import RejectionReason, SampleValue
from exporter.source import SourceError

_USED = layout.VALUE_AT_VALUE + 8
"""Bytes of a record up to the end of a number. Divisible by 8, so that every attribute is at a multiple of its size."""
_TYPES = {"int": layout.TYPE_INT64, "float": layout.TYPE_DOUBLE, "string": layout.TYPE_STRING}


class RecordBuffer:
    """Memory for the records of one read, reused by every read.

    A number overwrites only the first 40 bytes of its record (4.6.0, measured): a text of an earlier read can be behind
    it. So a record is decoded by its own type, never by its field's.
    """

    def __init__(self, records: int) -> None:
        self.memory = bytearray(max(records, 1) * layout.VALUE_SIZE)
        self.pointer = (ctypes.c_char * len(self.memory)).from_buffer(self.memory)


@dataclass(slots=True)
class DecodedRead:
    """The result of one read."""

    columns: list[tuple[SampleValue, ...]] = field(default_factory=list)
    """`columns[f][e]` is the value of field f of entity e; None where there is none to expose."""
    timestamps: list[tuple[int, ...]] = field(default_factory=list)
    """As `columns`, in microseconds since the epoch. Of event fields only; empty for the others."""
    rejected: Counter[tuple[int, RejectionReason]] = field(default_factory=Counter)
    """How many values are not exposed, by field id and reason."""
    suspect: bool = False
    """Whether a value is stale or not watched.

    Then the engine has forgotten a watch, or an entity id means another MIG device now: the old watch keeps its last
    value, with its old timestamp and status OK, for good (4.6.0, source).
    """


class _Records(NamedTuple):
    """Records, attribute by attribute. `positions` are their positions in the buffer."""

    positions: Sequence[int]
    types: Sequence[int]
    statuses: Sequence[int]
    timestamps: Sequence[int]
    integers: Sequence[int]
    doubles: Sequence[float]

    def column(self, index: int, width: int) -> "_Records":
        """Return the records of one of `width` fields, where all fields of an entity are next to each other."""
        return _Records(*(attribute[index::width] for attribute in self))  # type: ignore[arg-type] # doubles among integers

    def uniform(self, fresh: tuple[int, int]) -> bool:
        """Whether all records have one type, status OK and a timestamp within `fresh`."""
        if any(self.statuses) or self.types.count(self.types[0]) != len(self.types):
            return False
        return fresh[0] <= min(self.timestamps) and max(self.timestamps) <= fresh[1]


Number = TypeVar("Number", int, float)


def _every(used: "array[Number]", offset: int) -> "array[Number]":
    """Return the number at this byte offset of every record, out of the used bytes of all records."""
    return used[offset // used.itemsize :: _USED // used.itemsize]


class RecordReader:
    """Decodes one read (always of these entities and fields) from a buffer, at every collection."""

    def __init__(
        self,
        buffer: RecordBuffer,
        entities: Sequence[tuple[int, int]],
        fields: Sequence[WantedField],
        interval: float,
    ) -> None:
        """`interval` is the collection interval in seconds: it bounds the age of a value."""
        self._fields = tuple(fields)
        self._limits = tuple(int(age_limit(wanted, interval) * 1e6) for wanted in fields)
        size = len(entities) * len(fields) * layout.VALUE_SIZE
        self._memory = memoryview(buffer.memory)[:size]
        self._used = [self._memory[begin : begin + _USED] for begin in range(0, size, layout.VALUE_SIZE)]
        # What is expected of every read. Arrays of one type are compared as bytes, without Python per value.
        self._heads = array("Q", [layout.VALUE_VERSION | kind << 32 for kind, _ in entities for _ in fields])
        self._ids = array("I", [entity for _, entity in entities for _ in fields])
        self._numbers = array("H", [wanted.id for _ in entities for wanted in fields])
        self._types = array("H", [_TYPES[wanted.kind] for _ in entities for wanted in fields])
        self._statuses = array("i", [layout.OK] * len(self._ids))

    def decode(self, now: int) -> DecodedRead:
        """Decode the buffer. `now` is in microseconds since the epoch.

        Raises SourceError `layout_mismatch` when the records are not the ones that were asked for.
        """
        records, decoded = self._records(), DecodedRead()
        usual = self._usual(records, now)
        width = len(self._fields)
        for index, wanted in enumerate(self._fields):
            values = _valid_numbers(records, index, width, wanted) if usual else None
            if values is None:
                values = self._column(records.column(index, width), index, now, decoded)
            decoded.columns.append(values)
            decoded.timestamps.append(tuple(records.timestamps[index::width]) if wanted.watch == "event" else ())
        return decoded

    def _column(self, column: _Records, index: int, now: int, decoded: DecodedRead) -> tuple[SampleValue, ...]:
        """Return the values of one column of a read that is not usual as a whole."""
        wanted, limit = self._fields[index], self._limits[index]
        fresh = (now - limit, now + limit)
        values = _valid_numbers(column, 0, 1, wanted) if column.uniform(fresh) else None
        return self._checked_column(column, wanted, fresh, decoded) if values is None else values

    def _records(self) -> _Records:
        used = b"".join(self._used)
        shorts, words, longs = array("H", used), array("i", used), array("q", used)
        order = self._order(used)
        records = _Records(
            order,
            _every(shorts, layout.VALUE_AT_TYPE),
            _every(words, layout.VALUE_AT_STATUS),
            _every(longs, layout.VALUE_AT_TIMESTAMP),
            _every(longs, layout.VALUE_AT_VALUE),
            _every(array("d", used), layout.VALUE_AT_VALUE),
        )
        if isinstance(order, range):
            return records
        sorted_attributes = ([attribute[position] for position in order] for attribute in records[1:])
        return _Records(order, *sorted_attributes)  # type: ignore[arg-type] # doubles among integers

    def _order(self, used: bytes) -> Sequence[int]:
        """Return the position of every record that was asked for.

        The header does not promise an order. Records of watched fields came in the order asked for, those of a live
        read did not (4.6.0, measured). So version word, kind, id and field of every record are compared each time.
        """
        heads = _every(array("Q", used), 0)  # version word and entity kind in one
        ids = _every(array("I", used), layout.VALUE_AT_ENTITY)
        numbers = _every(array("H", used), layout.VALUE_AT_FIELD)
        if ids == self._ids and numbers == self._numbers and heads == self._heads:
            return range(len(ids))
        positions = {key: position for position, key in enumerate(zip(heads, ids, numbers, strict=True))}
        asked = zip(self._heads, self._ids, self._numbers, strict=True)
        try:
            return [positions[key] for key in asked]
        except KeyError:
            message = "libdcgm answered with records of another version, entity or field than asked for"
            raise SourceError(DcgmReason.LAYOUT_MISMATCH, message) from None

    def _usual(self, records: _Records, now: int) -> bool:
        """Whether every record has status OK, the type of its field and a fresh timestamp."""
        if records.statuses != self._statuses or records.types != self._types:
            return False
        limit = min(self._limits, default=0)
        return now - limit <= min(records.timestamps) and max(records.timestamps) <= now + limit

    def _checked_column(
        self, column: _Records, wanted: WantedField, fresh: tuple[int, int], decoded: DecodedRead
    ) -> tuple[SampleValue, ...]:
        """Check a column value by value."""
        values: list[SampleValue] = []
        for position, type_, status, timestamp, integer, double in zip(*column, strict=True):
            if status == layout.NO_DATA and before_first_event(wanted) is not None:
                values.append(before_first_event(wanted))  # whatever its time: the record has no event
                continue
            number = double if type_ == layout.TYPE_DOUBLE else integer
            value, reason = self._checked(wanted, position, type_, status, number)
            # A status of OK only means that the engine ever had a value (4.6.0, source): its age decides. A timestamp
            # of the future is as wrong: then the clocks of the two machines differ, and no age can be trusted.
            if value is not None and not fresh[0] <= timestamp <= fresh[1]:
                value, reason = None, too_old(wanted)
            reason = rejection_to_count(reason, wanted)
            decoded.suspect = decoded.suspect or status == layout.NOT_WATCHED or reason is RejectionReason.STALE
            if reason is not None:
                decoded.rejected[wanted.id, reason] += 1
            values.append(value)
        return tuple(values)

    def _checked(
        self, wanted: WantedField, position: int, type_: int, status: int, number: float
    ) -> tuple[SampleValue, RejectionReason | None]:
        if status != layout.OK:
            return None, status_reason(status)
        if type_ in (layout.TYPE_INT64, layout.TYPE_TIMESTAMP, layout.TYPE_DOUBLE):
            return checked_raw(number, wanted)
        if type_ == layout.TYPE_STRING:
            return checked_raw(self._text(position), wanted)
        return None, RejectionReason.NOT_SUPPORTED

    def _text(self, position: int) -> str:
        begin = position * layout.VALUE_SIZE + layout.VALUE_AT_VALUE
        raw = bytes(self._memory[begin : begin + layout.STRING_LENGTH])
        return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _valid_numbers(records: _Records, index: int, width: int, wanted: WantedField) -> tuple[SampleValue, ...] | None:
    """Return a column of one type at once if every value is a valid number, else None."""
    type_ = records.types[index]
    if type_ == layout.TYPE_INT64:
        values: Sequence[float] = records.integers[index::width]
        blank: float = layout.INT64_BLANK  # stays an int: converted to a float it would be another number
    elif type_ == layout.TYPE_DOUBLE:
        values, blank = records.doubles[index::width], layout.DOUBLE_BLANK
        if not math.isfinite(sum(values)):  # NaN or infinite if any of the values is
            return None
    else:
        return None
    lowest, highest = min(values), max(values)
    valid = highest < blank and in_range(lowest, wanted) and in_range(highest, wanted)
    return tuple(values) if valid else None
