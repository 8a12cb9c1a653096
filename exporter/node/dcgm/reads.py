"""From the plan of a pass to calls of the library: rectangles within its limits, and the blocks that come out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import Connection
from exporter.node.dcgm.discovery import Inventory
from exporter.node.dcgm.records import Decoded, RecordBuffer, RecordReader
from exporter.node.dcgm.watch import Entities
from exporter.node.devices.read_plan import Request, Watch
from exporter.node.devices.readings import Block, Cell, WantedField

CELLS_PER_CALL = 4096
"""Bounds the buffer to 17 MB: a record is 4,128 bytes whatever it holds."""


@dataclass(frozen=True, slots=True)
class Target:
    """Fields of entities of one level and watch group; `owners[i]` is the device that shows entity i's values."""

    watch: Watch
    entities: Entities
    owners: tuple[int, ...]
    fields: tuple[int, ...]

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.owners))

    def owned(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Each entity with its owner."""
        return zip(self.entities, self.owners, strict=True)

    def only(self, entities: Entities, fields: tuple[int, ...]) -> "Target":
        """The part of it that concerns these entities and fields."""
        owner_of = dict(self.owned())
        return Target(self.watch, entities, tuple(owner_of[entity] for entity in entities), fields)

    def chunks(self, most: int) -> Iterator["Target"]:
        """The same in parts of at most `most` entities and as many fields as a group holds.

        The entities of one device stay together.
        """
        for begin in range(0, len(self.fields), layout.FIELDS_PER_CALL):
            fields = self.fields[begin : begin + layout.FIELDS_PER_CALL]
            some: list[tuple[int, int]] = []
            for device in self.devices:
                own = [entity for entity, owner in self.owned() if owner == device]
                if some and len(some) + len(own) > most:
                    yield self.only(tuple(some), fields)
                    some = []
                some += own
            yield self.only(tuple(some), fields)


def targets_of(inventory: Inventory, requests: Sequence[Request], wanted: Mapping[int, WantedField]) -> list[Target]:
    """What to watch and read for these requests; the node's own fields and unreadable devices left out."""
    targets = []
    for request in requests:
        fields = tuple(field for field in request.fields if wanted[field].scope != "system")
        entities: list[tuple[int, int]] = []
        owners: list[int] = []
        for device in request.devices:
            own = _entities(inventory, device, request.watch)
            entities += own
            owners += [device] * len(own)
        if fields and entities:
            targets.append(Target(request.watch, tuple(entities), tuple(owners), fields))
    return targets


def _entities(inventory: Inventory, device: int, watch: Watch) -> Entities:
    entity = inventory.entities[device]
    if entity is None:
        return ()
    # The engine files an event under the finest entity that the driver named; it belongs to the board all the same.
    return inventory.parts.get(device, (entity,)) if watch == "event" else (entity,)


class Call:
    """One call of every pass: its arguments, made once, and its way from records to a block."""

    def __init__(
        self, target: Target, wanted: Mapping[int, WantedField], buffer: RecordBuffer, interval: float
    ) -> None:
        self._devices, self._owners, self._fields = target.devices, target.owners, target.fields
        self._pairs = layout.pairs(target.entities)
        self._buffer = buffer
        fields = [wanted[field] for field in target.fields]
        self._reader = RecordReader(buffer, target.entities, fields, interval)
        self._ids = layout.field_ids(target.fields)

    def read(self, connection: Connection, wall: Callable[[], float]) -> tuple[Block, Decoded]:
        """Asks and decodes; `wall` gives Unix seconds, to judge ages by. Raises SourceError."""
        connection.read(self._pairs, self._ids, 0, self._buffer.pointer)
        decoded = self._reader.decode(int(wall() * 1e6))
        columns = tuple(decoded.columns)
        if len(self._owners) != len(self._devices):
            columns = tuple(map(self._newest, decoded.columns, decoded.stamps))
        return Block(self._devices, self._fields, columns), decoded

    def _newest(self, cells: Sequence[Cell], stamps: Sequence[int]) -> tuple[Cell, ...]:
        """Per device the newest value among its entities."""
        newest: dict[int, tuple[int, Cell]] = {}
        for owner, cell, stamp in zip(self._owners, cells, stamps, strict=True):
            if cell is not None and stamp >= newest.get(owner, (0, None))[0]:
                newest[owner] = stamp, cell
        return tuple(newest.get(device, (0, None))[1] for device in self._devices)


def calls_of(targets: Sequence[Target], wanted: Mapping[int, WantedField], interval: float) -> Iterator[Call]:
    """The calls that read what is watched, all through one buffer."""
    parts = [part for target in targets for part in target.chunks(max(CELLS_PER_CALL // len(target.fields), 1))]
    buffer = RecordBuffer(max((len(part.entities) * len(part.fields) for part in parts), default=0))
    return (Call(part, wanted, buffer, interval) for part in parts)
