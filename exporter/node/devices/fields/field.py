"""Reads `fields.csv`, every field of DCGM under every name that it ever had: what it is, where it is, its range.

Ids and types are those of NVIDIA's `dcgm_fields.h`, DCGM 3.1 to 4.6. In these versions a field's id never changed but
its name often did, so every spelling of a name is mapped to the same id. The table has over 600 fields, of which a
counters file names a few dozen: the object of a field is made when it is first asked for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, TypeVar, cast

from exporter.node.devices.fields.device_source import FieldKind, Scope, WantedField, WatchGroup

TableKind = FieldKind | Literal["binary"]
"""Type of a field's values in DCGM. A `binary` one is a structure of C, which cannot be exposed."""
TableScope = Scope | Literal["connectx"]
"""What DCGM has one value of a field for. Sources read the scopes of `Scope` only."""
MigValue = Literal["own", "gpu_instance", "gpu", "none", ""]
"""What DCGM has for a GPU instance or a compute instance: a value of its own, one of the GPU instance alone, that of
the GPU, or none; empty where the question makes no sense."""

NOT_READ: Mapping[TableScope, str] = {
    "connectx": "ConnectX network adapter",
}
"""The scopes that no source reads, and what each of them is."""

_NAME, _NEWER, _ALIASES = 9, 10, 11
"""Columns of the table."""


@dataclass(frozen=True, slots=True)
class Field:
    """One DCGM field, as in its row of `fields.csv`."""

    id: int
    kind: TableKind
    scope: TableScope
    mig: MigValue
    watch: WatchGroup
    unit: str
    """The unit of DCGM's value, before any conversion."""
    low: float | None
    """Smallest possible value; anything below is out of range. None where there is no such limit."""
    high: float | None
    """Largest possible value, in the same way. The head of the table states why a limit is what it is."""
    since: str
    """The first version of DCGM that has the field."""
    names: tuple[str, ...]
    """Every spelling; first the classic one, which dcgm-exporter's files have."""
    help: str

    @property
    def is_read(self) -> bool:
        """Whether sources read the field: not a structure, and not of one of the entities of NOT_READ."""
        return self.scope not in NOT_READ and self.kind != "binary"

    def wanted(self) -> WantedField:
        """Return what a source needs of this field, which must be one that is read."""
        kind, scope = cast("FieldKind", self.kind), cast("Scope", self.scope)
        return WantedField(self.id, kind, scope, self.watch, self.high, self.low)


@cache
def _field(row: str) -> Field:
    id_, kind, scope, mig, watch, unit, low, high, since, *names, help_ = row.split(",")
    return Field(
        id=int(id_),
        kind=cast("TableKind", kind),
        scope=cast("TableScope", scope),
        mig=cast("MigValue", mig),
        watch=cast("WatchGroup", watch),
        unit=unit,
        low=float(low) if low else None,
        high=float(high) if high else None,
        since=since,
        names=tuple(" ".join(names).split()),
        help=help_,
    )


FieldKey = TypeVar("FieldKey")


class FieldIndex(Mapping[FieldKey, Field]):
    """Fields by id or by name."""

    def __init__(self, rows: Mapping[FieldKey, str]) -> None:
        self._rows = rows

    def __getitem__(self, key: FieldKey) -> Field:
        return _field(self._rows[key])

    def __iter__(self) -> Iterator[FieldKey]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@cache
def _rows() -> tuple[str, ...]:
    table = files("exporter.node.devices").joinpath("fields.csv").read_text(encoding="utf-8")
    _head, *rows = (line for line in table.splitlines() if not line.startswith("#"))
    return tuple(rows)


@cache
def fields() -> Mapping[int, Field]:
    """Every known field by id."""
    return FieldIndex({int(row.partition(",")[0]): row for row in _rows()})


@cache
def fields_by_name() -> Mapping[str, Field]:
    """Every known field by every spelling, the lower-case names of dcgm-exporter 1.x included."""
    rows: dict[str, str] = {}
    for row in _rows():
        name, newer, aliases = row.split(",")[_NAME : _ALIASES + 1]
        rows[name] = row
        if newer or aliases:
            rows.update(dict.fromkeys(f"{newer} {aliases}".split(), row))
    return FieldIndex(rows)
