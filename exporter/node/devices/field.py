"""Reads `fields.csv`, the DCGM fields that gpugauge can expose: id, kind, scope, watch group, unit, range, names.

Ids and types are those of NVIDIA's `dcgm_fields.h`, DCGM 3.1 to 4.6. In these versions a field's id never changed but
its name often did, so every spelling of a name is mapped to the same id.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from exporter.node.devices.device_source import FieldKind, Scope, WantedField, WatchGroup


@dataclass(frozen=True, slots=True)
class Field:
    """One DCGM field, as in its row of `fields.csv`."""

    id: int
    kind: FieldKind
    scope: Scope
    watch: WatchGroup
    unit: str
    """The unit of DCGM's value, before any conversion."""
    low: float | None
    """Smallest possible value; anything below is out of range. None where there is no such limit."""
    high: float | None
    """Largest possible value, in the same way. The head of the table states why a limit is what it is."""
    names: tuple[str, ...]
    """Every spelling; first the one in dcgm-exporter's default counters file."""

    def wanted(self) -> WantedField:
        """Return what a source needs of this field."""
        return WantedField(self.id, self.kind, self.scope, self.watch, self.high, self.low)


def _field(row: dict[str, str]) -> Field:
    return Field(
        id=int(row["id"]),
        kind=cast("FieldKind", row["kind"]),
        scope=cast("Scope", row["scope"]),
        watch=cast("WatchGroup", row["watch"]),
        unit=row["unit"],
        low=float(row["low"]) if row["low"] else None,
        high=float(row["high"]) if row["high"] else None,
        names=tuple(row["names"].split()),
    )


@cache
def fields() -> Mapping[int, Field]:
    """Every known field by id."""
    table = files("exporter.node.devices").joinpath("fields.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in table.splitlines() if not line.startswith("#"))
    return {field.id: field for field in map(_field, rows)}


@cache
def fields_by_name() -> Mapping[str, Field]:
    """Every known field by every spelling, the lower-case names of dcgm-exporter 1.x included."""
    return {name: field for field in fields().values() for name in field.names}
