"""From the records of one read to columns of judged cells.

A record has 4,128 bytes, of which 40 matter unless it holds a text. Those of all records are brought together first,
so that the large buffer is walked through once, and taken apart by slices, each one loop in C. A field whose whole
column is good numbers of one type costs no Python per value.
"""

import ctypes
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from exporter.node.dcgm import layout
from exporter.node.dcgm.values import age_limit, judge, status_reason
from exporter.node.devices.readings import Cell, RejectReason, WantedField
from exporter.source import SourceError

_USED = layout.VALUE_AT_VALUE + 8
"""Bytes of a record up to the end of a number."""
_TYPES = {"int": layout.TYPE_INT64, "float": layout.TYPE_DOUBLE, "string": layout.TYPE_STRING}


class RecordBuffer:
    """Room for the records of one read, used again for every read."""

    def __init__(self, records: int) -> None:
        self.memory = bytearray(max(records, 1) * layout.VALUE_SIZE)
        self.pointer = (ctypes.c_char * len(self.memory)).from_buffer(self.memory)


@dataclass(slots=True)
class Decoded:
    """One read: `columns[f][e]`, the stamps (µs) of event fields, and what is not shown and why."""

    columns: list[tuple[Cell, ...]] = field(default_factory=list)
    stamps: list[tuple[int, ...]] = field(default_factory=list)
    rejected: Counter[tuple[int, RejectReason]] = field(default_factory=Counter)
    suspect: bool = False
    """Whether a cell has grown old or is not watched: the engine has forgotten, or the entity is another one now."""


class _Parts(NamedTuple):
    """Records part by part; `places` says where in the buffer each of them lies."""

    places: Sequence[int]
    types: Sequence[int]
    statuses: Sequence[int]
    stamps: Sequence[int]
    integers: Sequence[int]
    doubles: Sequence[float]

    def column(self, place: int, width: int) -> "_Parts":
        """One field of all entities, where all fields of an entity stand together."""
        return _Parts(*(part[place::width] for part in self))  # type: ignore[arg-type] # doubles among integers

    def uniform(self, fresh: tuple[int, int]) -> bool:
        """Whether all are of one type, in order, and of the time in question."""
        if any(self.statuses) or self.types.count(self.types[0]) != len(self.types):
            return False
        return fresh[0] <= min(self.stamps) and max(self.stamps) <= fresh[1]


Number = TypeVar("Number", int, float)


def _every(whole: "array[Number]", offset: int) -> "array[Number]":
    """The number at that offset of every record, out of the used bytes of all."""
    return whole[offset // whole.itemsize :: _USED // whole.itemsize]


class RecordReader:
    """Takes one fixed read (these entities, these fields) out of a buffer, pass after pass."""

    def __init__(
        self,
        buffer: RecordBuffer,
        entities: Sequence[tuple[int, int]],
        fields: Sequence[WantedField],
        interval: float,
    ) -> None:
        self._fields = tuple(fields)
        self._limits = tuple(int(age_limit(wanted, interval) * 1e6) for wanted in fields)
        size = len(entities) * len(fields) * layout.VALUE_SIZE
        self._memory = memoryview(buffer.memory)[:size]
        self._used = [self._memory[begin : begin + _USED] for begin in range(0, size, layout.VALUE_SIZE)]
        # Expected of every read; arrays of one type compare as bytes.
        self._heads = array("Q", [layout.VALUE_VERSION | kind << 32 for kind, _ in entities for _ in fields])
        self._ids = array("I", [entity for _, entity in entities for _ in fields])
        self._numbers = array("H", [wanted.id for _ in entities for wanted in fields])
        self._types = array("H", [_TYPES[wanted.kind] for _ in entities for wanted in fields])
        self._statuses = array("i", [layout.OK] * len(self._ids))

    def decode(self, now: int) -> Decoded:
        """The columns as of `now` (µs since the epoch).

        Raises SourceError `layout_mismatch` when the records are not what was asked for.
        """
        parts, decoded = self._parts(), Decoded()
        usual = self._usual(parts, now)
        width = len(self._fields)
        for place, wanted in enumerate(self._fields):
            cells = _plain(parts, place, width, wanted) if usual else None
            if cells is None:
                cells = self._unusual(parts.column(place, width), place, now, decoded)
            decoded.columns.append(cells)
            decoded.stamps.append(tuple(parts.stamps[place::width]) if wanted.watch == "event" else ())
        return decoded

    def _unusual(self, column: _Parts, place: int, now: int, decoded: Decoded) -> tuple[Cell, ...]:
        """A column of a read in which something somewhere is not as it mostly is."""
        wanted, limit = self._fields[place], self._limits[place]
        fresh = (now - limit, now + limit)
        cells = _plain(column, 0, 1, wanted) if column.uniform(fresh) else None
        return self._judged(column, wanted, fresh, decoded) if cells is None else cells

    def _parts(self) -> _Parts:
        used = b"".join(self._used)
        shorts, words, longs = array("H", used), array("i", used), array("q", used)
        order = self._order(used)
        parts = _Parts(
            order,
            _every(shorts, layout.VALUE_AT_TYPE),
            _every(words, layout.VALUE_AT_STATUS),
            _every(longs, layout.VALUE_AT_TIMESTAMP),
            _every(longs, layout.VALUE_AT_VALUE),
            _every(array("d", used), layout.VALUE_AT_VALUE),
        )
        if isinstance(order, range):
            return parts
        moved = ([part[place] for place in order] for part in parts[1:])
        return _Parts(order, *moved)  # type: ignore[arg-type] # doubles among integers

    def _order(self, used: bytes) -> Sequence[int]:
        """Where each asked record lies: in the order of asking nearly always, which the header does not promise."""
        heads = _every(array("Q", used), 0)  # version word and entity kind in one
        ids = _every(array("I", used), layout.VALUE_AT_ENTITY)
        numbers = _every(array("H", used), layout.VALUE_AT_FIELD)
        if ids == self._ids and numbers == self._numbers and heads == self._heads:
            return range(len(ids))
        where = {key: place for place, key in enumerate(zip(heads, ids, numbers, strict=True))}
        asked = zip(self._heads, self._ids, self._numbers, strict=True)
        try:
            return [where[key] for key in asked]
        except KeyError:
            sentence = "libdcgm answered with records of another version, entity or field than asked for"
            raise SourceError("layout_mismatch", sentence) from None

    def _usual(self, parts: _Parts, now: int) -> bool:
        """Whether every record is in order, of its field's own type, and fresh: then no column need be looked at."""
        if parts.statuses != self._statuses or parts.types != self._types:
            return False
        limit = min(self._limits, default=0)
        return now - limit <= min(parts.stamps) and max(parts.stamps) <= now + limit

    def _judged(
        self, column: _Parts, wanted: WantedField, fresh: tuple[int, int], decoded: Decoded
    ) -> tuple[Cell, ...]:
        """The column value by value."""
        cells: list[Cell] = []
        for record, kind, status, stamp, integer, double in zip(*column, strict=True):
            number = double if kind == layout.TYPE_DOUBLE else integer
            cell, reason = self._cell(wanted, record, kind, status, number)
            if cell is not None and not fresh[0] <= stamp <= fresh[1]:
                # An event that has grown old is no failure of its field.
                cell, reason = None, None if wanted.watch == "event" else "stale"
            decoded.suspect = decoded.suspect or status == layout.NOT_WATCHED or reason == "stale"
            if reason is not None and (reason != "blank" or wanted.watch != "event"):
                decoded.rejected[wanted.id, reason] += 1
            cells.append(cell)
        return tuple(cells)

    def _cell(
        self, wanted: WantedField, record: int, kind: int, status: int, number: float
    ) -> tuple[Cell, RejectReason | None]:
        if status != layout.OK:
            return None, status_reason(status)
        if kind in (layout.TYPE_INT64, layout.TYPE_TIMESTAMP, layout.TYPE_DOUBLE):
            return judge(number, wanted)
        if kind == layout.TYPE_STRING:
            return judge(self._text(record), wanted)
        return None, "not_supported"

    def _text(self, record: int) -> str:
        begin = record * layout.VALUE_SIZE + layout.VALUE_AT_VALUE
        raw = bytes(self._memory[begin : begin + layout.STRING_LENGTH])
        return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _plain(parts: _Parts, place: int, width: int, wanted: WantedField) -> tuple[Cell, ...] | None:
    """A whole uniform column at once when every value is a good number; else None."""
    kind = parts.types[place]
    if kind == layout.TYPE_INT64:
        values: Sequence[float] = parts.integers[place::width]
        mark: float = layout.INT64_BLANK  # an integer all the same: as a float it would be another number
    elif kind == layout.TYPE_DOUBLE:
        values, mark = parts.doubles[place::width], layout.DOUBLE_BLANK
        if not math.isfinite(sum(values)):  # one that is not finite makes the sum likewise
            return None
    else:
        return None
    highest = max(values)
    in_range = wanted.high is None or highest <= wanted.high
    return tuple(values) if highest < mark and in_range else None
