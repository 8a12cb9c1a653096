"""The DCGM fields we know: number, names of every generation, type, unit and scope, as data in `fields.csv`.

Numbers and types are those of NVIDIA's `dcgm_fields.h` from 3.1 to 4.6; a field's number never changed in that
span, its name often did, so every spelling leads to the same number.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

from exporter.node.devices.readings import WantedField


@dataclass(frozen=True, slots=True)
class Field:
    """One DCGM field. `unit` is that of the library's value, before any conversion."""

    id: int
    kind: Literal["int", "float", "string"]
    scope: Literal["system", "board", "instance"]
    watch: Literal["basic", "profiling", "event"]
    unit: str
    high: float | None
    names: tuple[str, ...]

    def wanted(self) -> WantedField:
        """The part of it that a reader needs."""
        return WantedField(self.id, self.kind, self.scope, self.watch, self.high)


def _field(row: dict[str, str]) -> Field:
    return Field(
        id=int(row["id"]),
        kind=cast("Literal['int', 'float', 'string']", row["kind"]),
        scope=cast("Literal['system', 'board', 'instance']", row["scope"]),
        watch=cast("Literal['basic', 'profiling', 'event']", row["watch"]),
        unit=row["unit"],
        high=float(row["high"]) if row["high"] else None,
        names=tuple(row["names"].split()),
    )


@cache
def fields() -> Mapping[int, Field]:
    """Every known field by number."""
    table = files("exporter.node.devices").joinpath("fields.csv").read_text(encoding="utf-8")
    return {field.id: field for field in map(_field, csv.DictReader(table.splitlines()))}


@cache
def fields_by_name() -> Mapping[str, Field]:
    """Every known spelling; the old lower-case names of the 1.x exporter among them."""
    return {name: field for field in fields().values() for name in field.names}
