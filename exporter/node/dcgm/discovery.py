"""What an engine manages: boards, MIG instances and compute instances, as devices with their entities."""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import Connection
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.records import RecordBuffer, RecordReader
from exporter.node.devices.readings import Cell, Device, WantedField

Entity = tuple[int, int]
"""Kind and id, good for one engine life only."""
Values = Mapping[tuple[int, int, int], Cell]
"""By kind, id and field."""

_BOARD_FIELDS = (
    WantedField(layout.FIELD_NAME, "string", "board", "basic"),
    WantedField(layout.FIELD_NVML_INDEX, "int", "board", "basic"),
    WantedField(layout.FIELD_SERIAL, "string", "board", "basic"),
    WantedField(layout.FIELD_UUID, "string", "board", "basic"),
    WantedField(layout.FIELD_MINOR_NUMBER, "int", "board", "basic"),
    WantedField(layout.FIELD_PCI_BUS_ID, "string", "board", "basic"),
    WantedField(layout.FIELD_MIG_MODE, "int", "board", "basic"),
)
_INSTANCE_FIELDS = (
    WantedField(layout.FIELD_NAME, "string", "instance", "basic"),
    WantedField(layout.FIELD_UUID, "string", "instance", "basic"),
)
_LIVE_INTERVAL = 1e9
"""Seconds: a live value is never old, whatever the clock of the engine's node says."""


class Row(NamedTuple):
    """One line of the engine's MIG hierarchy."""

    entity: Entity
    parent: Entity
    gi: int
    ci: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What must stay equal for groups and watches to stay good; cheap to take in every pass."""

    boards: tuple[tuple[int, int], ...]
    """Engine id and state of each board."""
    hierarchy: bytes
    """The engine's rows as they are: uuid, instance ids and profile among them."""
    problem: str = ""
    """Why the hierarchy cannot be read; empty when it can."""

    @property
    def readable(self) -> tuple[int, ...]:
        return tuple(gpu for gpu, state in self.boards if state not in layout.GPU_UNREADABLE)


@dataclass(frozen=True, slots=True)
class Inventory:
    """Devices and, in parallel, their entities; `parts` holds every entity of the board at that index."""

    devices: tuple[Device, ...]
    entities: tuple[Entity | None, ...]
    parts: Mapping[int, tuple[Entity, ...]]
    down: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]
    complete: bool = True
    """Whether every board could be told apart."""

    @property
    def readable(self) -> tuple[int, ...]:
        """Indices of the devices that can be asked."""
        return tuple(index for index, entity in enumerate(self.entities) if entity is not None)


def shape(connection: Connection) -> Shape:
    """The engine's boards and instances as of now. Raises SourceError."""
    boards = tuple((gpu, connection.gpu_state(gpu)) for gpu in connection.gpu_ids())
    try:
        rows = connection.hierarchy()
    except StatusError as error:
        if error.reason in ("connection_lost", "timeout"):
            raise
        return Shape(boards, b"", str(error))
    size = layout.Hierarchy.rows.offset + ctypes.sizeof(layout.HierarchyRow) * rows.count
    return Shape(boards, bytes(memoryview(rows).cast("B")[:size]))


def hierarchy_rows(raw: bytes) -> tuple[Row, ...]:
    """The rows of a shape's hierarchy."""
    begin = layout.Hierarchy.rows.offset
    step = ctypes.sizeof(layout.HierarchyRow)
    rows = (layout.HierarchyRow.from_buffer_copy(raw, place) for place in range(begin, len(raw), step))
    return tuple(
        Row((row.entity.kind, row.entity.id), (row.parent.kind, row.parent.id), row.nvml_instance_id, ci=_signed(row))
        for row in rows
    )


def take_inventory(
    connection: Connection, seen: Shape, known: Mapping[str, Device], driver: str, live: "LiveValues"
) -> Inventory:
    """Describes what the shape shows. Boards in `known` (by uuid) that have gone or cannot be read are `down`.

    Asks the driver live, a few dozen milliseconds at most. Raises SourceError.
    """
    rows = hierarchy_rows(seen.hierarchy)
    values = live([(layout.ENTITY_GPU, gpu) for gpu in seen.readable], _BOARD_FIELDS)
    values |= live([row.entity for row in rows], _INSTANCE_FIELDS)
    for gpu, state in seen.boards:
        if state in layout.GPU_UNREADABLE:
            values |= _values_of_unreadable(live, gpu)
    listing = _Listing(values, rows, driver)
    for gpu, state in seen.boards:
        listing.add_board(gpu, connection.architecture(gpu), readable=state not in layout.GPU_UNREADABLE)
    listing.add_missing(known)
    if seen.problem:
        listing.problems.append(("hierarchy_unreadable", f"MIG instances cannot be listed: {seen.problem}"))
    return listing.inventory()


class LiveValues:
    """What the driver says now, without any watch, of every field of every entity; `wall` gives Unix seconds."""

    def __init__(self, connection: Connection, wall: Callable[[], float]) -> None:
        self._connection, self._wall = connection, wall

    def __call__(self, entities: Sequence[Entity], fields: Sequence[WantedField]) -> dict[tuple[int, int, int], Cell]:
        values: dict[tuple[int, int, int], Cell] = {}
        step = layout.ENTITIES_PER_CALL[self._connection.library.major]
        for begin in range(0, len(entities), step):
            values |= self._some(entities[begin : begin + step], fields)
        return values

    def _some(self, some: Sequence[Entity], fields: Sequence[WantedField]) -> dict[tuple[int, int, int], Cell]:
        buffer = RecordBuffer(len(some) * len(fields))
        reader = RecordReader(buffer, some, fields, _LIVE_INTERVAL)
        ids = layout.field_ids([field.id for field in fields])
        self._connection.read(layout.pairs(some), ids, layout.LIVE_DATA, buffer.pointer)
        columns = reader.decode(int(self._wall() * 1e6)).columns
        return {
            (*entity, field.id): cell
            for field, column in zip(fields, columns, strict=True)
            for entity, cell in zip(some, column, strict=True)
        }


def _values_of_unreadable(live: LiveValues, gpu: int) -> dict[tuple[int, int, int], Cell]:
    """A detached board still gives its name and uuid, a lost one may give nothing: either is fine."""
    try:
        return live([(layout.ENTITY_GPU, gpu)], _BOARD_FIELDS)
    except StatusError as error:
        if error.reason in ("connection_lost", "timeout"):
            raise
        return {}


def _signed(row: layout.HierarchyRow) -> int:
    return int(ctypes.c_int32(row.nvml_compute_instance_id).value)


class _Listing:
    """Collects devices in their order: each board, its GPU instances, the compute instances of shared ones."""

    def __init__(self, values: Values, rows: Iterable[Row], driver: str) -> None:
        self._values, self._rows, self._driver = values, tuple(rows), driver
        self._devices: list[Device] = []
        self._entities: list[Entity | None] = []
        self._parts: dict[int, tuple[Entity, ...]] = {}
        self._down: list[str] = []
        self._complete = True
        self.problems: list[tuple[str, str]] = []

    def add_board(self, gpu: int, architecture: str, *, readable: bool) -> None:
        entity = (layout.ENTITY_GPU, gpu)
        board = self._board(entity, architecture)
        if board is None:
            self._complete = False
            sentence = f"the engine lists a board (its id {gpu}) without a uuid"
            self.problems.append(("device_unidentified", sentence))
            return
        if not readable:
            self._down.append(board.uuid)
            self._add(board, None)
            return
        place = len(self._devices)
        self._add(board, entity)
        parts = [entity]
        for row in self._children(entity):
            parts += [row.entity, *(child.entity for child in self._children(row.entity))]
            for device, of in self._instances(board, row):
                self._add(device, of)
        self._parts[place] = tuple(parts)

    def add_missing(self, known: Mapping[str, Device]) -> None:
        """Boards that were there before and are not listed any more."""
        present = {device.uuid for device in self._devices}
        for uuid, device in known.items():
            if uuid not in present:
                self._down.append(uuid)
                self._add(device, None)

    def inventory(self) -> Inventory:
        return Inventory(
            tuple(self._devices),
            tuple(self._entities),
            self._parts,
            tuple(self._down),
            tuple(self.problems),
            self._complete,
        )

    def _add(self, device: Device, entity: Entity | None) -> None:
        self._devices.append(device)
        self._entities.append(entity)

    def _children(self, parent: Entity) -> Iterator[Row]:
        return (row for row in self._rows if row.parent == parent)

    def _board(self, entity: Entity, architecture: str) -> Device | None:
        uuid = self._text(entity, layout.FIELD_UUID)
        if not uuid:
            return None
        mig = self._values.get((*entity, layout.FIELD_MIG_MODE))
        return Device(
            uuid=uuid,
            index=self._number(entity, layout.FIELD_NVML_INDEX, otherwise=entity[1]),
            pci_bus_id=self._text(entity, layout.FIELD_PCI_BUS_ID).upper(),
            minor=self._number(entity, layout.FIELD_MINOR_NUMBER, otherwise=-1),
            model=self._text(entity, layout.FIELD_NAME),
            serial=self._text(entity, layout.FIELD_SERIAL),
            architecture=architecture,
            driver_version=self._driver,
            mig_enabled=None if mig is None else bool(mig),
        )

    def _instances(self, board: Device, row: Row) -> Iterator[tuple[Device, Entity]]:
        """A GPU instance and, where several compute instances share it, each of those."""
        parts = list(self._children(row.entity))
        uuids = tuple(filter(None, (self._text(part.entity, layout.FIELD_UUID) for part in parts)))
        profile = self._text(row.entity, layout.FIELD_NAME)
        yield _instance(board, row.gi, -1, profile, uuids), row.entity
        if len(parts) > 1:
            for part in parts:
                own = self._text(part.entity, layout.FIELD_NAME) or profile
                uuid = self._text(part.entity, layout.FIELD_UUID)
                yield _instance(board, row.gi, part.ci, own, (uuid,) if uuid else ()), part.entity

    def _text(self, entity: Entity, field: int) -> str:
        value = self._values.get((*entity, field))
        return value if isinstance(value, str) else ""

    def _number(self, entity: Entity, field: int, *, otherwise: int) -> int:
        value = self._values.get((*entity, field))
        return value if isinstance(value, int) else otherwise


def _instance(board: Device, gi: int, ci: int, profile: str, uuids: tuple[str, ...]) -> Device:
    return Device(
        uuid=board.uuid,
        index=board.index,
        pci_bus_id=board.pci_bus_id,
        minor=board.minor,
        model=board.model,
        gi=gi,
        ci=ci,
        profile=profile,
        mig_uuids=uuids,
        serial=board.serial,
        architecture=board.architecture,
        driver_version=board.driver_version,
        mig_enabled=board.mig_enabled,
    )
