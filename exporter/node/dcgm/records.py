"""From the records of one read to columns of judged cells.

The records lie in one reused buffer and are taken apart by columns with strided memoryviews, each one loop in C. A
field whose whole column is good numbers of one type costs no Python per value.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from exporter.node.dcgm import layout
from exporter.node.dcgm.values import age_limit, judge, status_reason
from exporter.node.reading import Cell, RejectReason, WantedField
from exporter.source import SourceError


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


class _Column(NamedTuple):
    """One field of all entities: where its records lie, and their raw parts."""

    records: Sequence[int]
    types: Sequence[int]
    statuses: Sequence[int]
    stamps: Sequence[int]
    integers: Sequence[int]
    doubles: Sequence[float]


Number = TypeVar("Number", int, float)


def _every(whole: "memoryview[Number]", offset: int) -> "memoryview[Number]":
    """The number at that offset of every record."""
    return whole[offset // whole.itemsize :: layout.VALUE_SIZE // whole.itemsize]


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
        self._memory = memoryview(buffer.memory)[: len(entities) * len(fields) * layout.VALUE_SIZE]
        self._heads = _every(self._memory.cast("Q"), 0)  # version word and entity kind in one
        self._ids = _every(self._memory.cast("I"), layout.VALUE_AT_ENTITY)
        self._numbers = _every(self._memory.cast("H"), layout.VALUE_AT_FIELD)
        self._types = _every(self._memory.cast("H"), layout.VALUE_AT_TYPE)
        self._statuses = _every(self._memory.cast("i"), layout.VALUE_AT_STATUS)
        self._stamps = _every(self._memory.cast("q"), layout.VALUE_AT_TIMESTAMP)
        self._integers = _every(self._memory.cast("q"), layout.VALUE_AT_VALUE)
        self._doubles = _every(self._memory.cast("d"), layout.VALUE_AT_VALUE)
        self._expected_heads = [layout.VALUE_VERSION | kind << 32 for kind, _ in entities for _ in fields]
        self._expected_ids = [entity for _, entity in entities for _ in fields]
        self._expected_numbers = [wanted.id for _ in entities for wanted in fields]

    def decode(self, now: int) -> Decoded:
        """The columns as of `now` (µs since the epoch).

        Raises SourceError `layout_mismatch` when the records are not what was asked for.
        """
        order = self._order()
        views = (self._types, self._statuses, self._stamps, self._integers, self._doubles)
        raw: tuple[list[Any], ...] = tuple(view.tolist() for view in views)
        decoded = Decoded()
        width = len(self._fields)
        for place, wanted in enumerate(self._fields):
            records = order[place::width]
            if isinstance(order, range):
                column = _Column(records, *(whole[place::width] for whole in raw))
            else:
                column = _Column(records, *([whole[i] for i in records] for whole in raw))
            fresh = (now - self._limits[place], now + self._limits[place])
            cells = self._plain(column, wanted, fresh)
            decoded.columns.append(self._judged(column, wanted, fresh, decoded) if cells is None else cells)
            decoded.stamps.append(tuple(column.stamps) if wanted.watch == "event" else ())
        return decoded

    def _order(self) -> Sequence[int]:
        """Where each asked record lies: in the order of asking nearly always, which the header does not promise."""
        heads, ids, numbers = self._heads.tolist(), self._ids.tolist(), self._numbers.tolist()
        if ids == self._expected_ids and numbers == self._expected_numbers and heads == self._expected_heads:
            return range(len(ids))
        where = {key: place for place, key in enumerate(zip(heads, ids, numbers, strict=True))}
        asked = zip(self._expected_heads, self._expected_ids, self._expected_numbers, strict=True)
        try:
            return [where[key] for key in asked]
        except KeyError:
            sentence = "libdcgm answered with records of another version, entity or field than asked for"
            raise SourceError("layout_mismatch", sentence) from None

    def _plain(self, column: _Column, wanted: WantedField, fresh: tuple[int, int]) -> tuple[Cell, ...] | None:
        """The whole column at once when every value is a fresh, good number of one type; else None."""
        first = column.types[0]
        if any(column.statuses) or column.types.count(first) != len(column.types):
            return None
        if min(column.stamps) < fresh[0] or max(column.stamps) > fresh[1]:
            return None
        if first == layout.TYPE_INT64:
            good = max(column.integers) < layout.INT64_BLANK
            values: Sequence[float] = column.integers
        elif first == layout.TYPE_DOUBLE:
            values = column.doubles
            good = all(map(math.isfinite, values)) and max(values) < layout.DOUBLE_BLANK
        else:
            return None
        in_range = wanted.high is None or max(values) <= wanted.high
        return tuple(values) if good and in_range else None

    def _judged(
        self, column: _Column, wanted: WantedField, fresh: tuple[int, int], decoded: Decoded
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
