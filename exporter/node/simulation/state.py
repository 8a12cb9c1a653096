"""What a scenario says about one moment: plain data that sources and stand-ins turn into their own forms.

Entity ids follow DCGM's scheme: a board's id is its place, moved on by one with each engine restart; an instance's
is the board's id times 8 plus its place on the board, so ids are used again after a reconfiguration.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from exporter.node.devices.field import Field, fields, fields_by_name
from exporter.node.simulation.document import (
    Board,
    Call,
    Cells,
    Compute,
    Disconnect,
    Document,
    Event,
    Fields,
    Holder,
    Instance,
    Lost,
    Mig,
    Restart,
    Versions,
    Xid,
)
from exporter.node.simulation.script import Script, ScriptCell, value_at

ENTITIES_PER_BOARD = 8
"""DCGM_MAX_INSTANCES_PER_GPU."""
BOARDS = 32
"""DCGM_MAX_NUM_DEVICES."""
NAME, SERIAL, UUID, BUS_ID, VBIOS = 50, 53, 54, 57, 85
UTILISATION = (203, 204, 206, 207)
DRAM_ACTIVE = 1005
XID = 230
FB_TOTAL, FB_FREE, FB_USED, FB_RESERVED, FB_USED_RATIO = 250, 251, 252, 253, 254
GPU_LOST = -18
DEVICE_COUNT = 4
WATT_DIGITS = 3
"""The driver gives power in milliwatts."""
IDENTITY = frozenset({1, 2, DEVICE_COUNT, 5, NAME, 52, SERIAL, UUID, 55, BUS_ID, 63, 67, 69, VBIOS})
"""Fields that say what a device is: they survive its loss, and an event has to name them to spoil them."""

CellMap = Mapping[int, ScriptCell]


@dataclass(frozen=True, slots=True)
class ComputeState:
    spec: Compute
    entity_id: int
    identity: str
    mig_index: int
    cells: CellMap


@dataclass(frozen=True, slots=True)
class InstanceState:
    spec: Instance
    entity_id: int
    identity: str
    cells: CellMap
    compute: tuple[ComputeState, ...]


@dataclass(frozen=True, slots=True)
class BoardState:
    spec: Board
    entity_id: int
    mig: bool | None
    lost: bool
    cells: CellMap
    instances: tuple[InstanceState, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A moment. `generation` counts engine lives, `link` breaks: a connection from before a break is dead."""

    t: float
    generation: int
    link: int
    connected: bool
    versions: Versions
    boards: tuple[BoardState, ...]
    calls: tuple[Call, ...]
    holders: tuple[Holder, ...]
    xids: tuple[Xid, ...]
    """Those that have come, in the order of time, none from before the engine's last restart."""


def field_of(key: str) -> Field | None:
    """The field that a name or a number means."""
    return fields().get(int(key)) if key.isdecimal() else fields_by_name().get(key)


def state_at(document: Document, t: float) -> State:
    """The state t seconds after the beginning; the same for the same t, whoever asks."""
    restarts = [event for event in document.events if isinstance(event, Restart) and event.at <= t]
    breaks = [event for event in document.events if isinstance(event, Disconnect) and event.at <= t]
    came_back = max((event.at + event.for_ for event in restarts), default=float("-inf"))
    xids = [e for e in document.events if isinstance(e, Xid) and came_back <= e.at <= t]
    xids.sort(key=lambda event: event.at)
    moment = _Moment(document, t, len(restarts), tuple(xids))
    return State(
        t=t,
        generation=len(restarts),
        link=len(restarts) + len(breaks),
        connected=t >= came_back and not any(_on(event, t) for event in breaks),
        versions=document.versions,
        boards=tuple(moment.boards()),
        calls=tuple(e for e in document.events if isinstance(e, Call) and _on(e, t)),
        holders=tuple(h for h in document.holders if h.from_ <= t and (h.until is None or t < h.until)),
        xids=moment.xids,
    )


def _on(event: Event, t: float) -> bool:
    if isinstance(event, Xid):
        return event.at <= t
    return event.at <= t and (event.for_ is None or t < event.at + event.for_)


@dataclass(frozen=True, slots=True)
class _Moment:
    document: Document
    t: float
    generation: int
    xids: tuple[Xid, ...]

    def boards(self) -> Iterator[BoardState]:
        for place, spec in enumerate(self.document.devices):
            lost = self._last(Lost, spec.uuid)
            if not (isinstance(lost, Lost) and lost.seen == "absent"):
                yield self._board(spec, (place + self.generation) % BOARDS, lost)

    def _last(self, kind: type[Lost | Mig], uuid: str) -> Lost | Mig | None:
        active = [e for e in self.document.events if isinstance(e, kind) and e.device == uuid and _on(e, self.t)]
        return max(active, key=lambda event: event.at, default=None)

    def _board(self, spec: Board, entity_id: int, lost: Lost | Mig | None) -> BoardState:
        change = self._last(Mig, spec.uuid)
        mig, instances = (change.mig, change.instances) if isinstance(change, Mig) else (spec.mig, spec.instances)
        since = change.at if change else 0.0
        cells = self._play(spec.use, spec.fields) | _board_identity(spec, self.document.versions, self.t, mig=mig)
        cells[DEVICE_COUNT] = ScriptCell(len(self.document.devices), self.t)
        cells |= {i: ScriptCell(None, self.t, "not_supported") for i in UTILISATION} if mig else {}
        seen = lost.seen if isinstance(lost, Lost) else None
        return BoardState(
            spec=spec,
            entity_id=entity_id,
            mig=mig,
            lost=lost is not None,
            cells=self._judge(spec.uuid, _framebuffer(cells, spec.memory_mib, self.t), seen),
            instances=tuple(self._instances(spec, entity_id, instances, since, seen)),
        )

    def _instances(
        self, board: Board, gpu: int, instances: Iterable[Instance], since: float, seen: str | None
    ) -> Iterator[InstanceState]:
        place = 0
        for index, spec in enumerate(instances):
            cells = self._instance_cells(spec)
            address = f"{board.uuid}/{spec.gi}"
            identity = f"{address}/{spec.profile}/{since}"
            compute = tuple(
                ComputeState(
                    spec=part,
                    entity_id=gpu * ENTITIES_PER_BOARD + place + offset,
                    identity=f"{identity}/{part.ci}/{part.uuid}",
                    mig_index=place + offset,
                    cells=self._judge(f"{address}/{part.ci}", self._compute_cells(part, spec, cells), seen),
                )
                for offset, part in enumerate(spec.compute)
            )
            place += len(compute)
            own = self._judge(address, cells, seen)
            yield InstanceState(spec, gpu * ENTITIES_PER_BOARD + index, identity, own, compute)

    def _instance_cells(self, spec: Instance) -> dict[int, ScriptCell]:
        cells = self._play(spec.use, spec.fields)
        cells[NAME] = ScriptCell(spec.profile, self.t)
        cells = _framebuffer(cells, spec.memory_mib, self.t)
        if not spec.compute:
            return {field: ScriptCell(None, self.t, "blank") for field in cells} | {NAME: cells[NAME]}
        cells[UUID] = ScriptCell(spec.compute[0].uuid, self.t)
        return cells

    def _compute_cells(self, part: Compute, spec: Instance, outer: CellMap) -> dict[int, ScriptCell]:
        cells = dict(outer) | self._play(part.use, part.fields)
        cells[NAME] = ScriptCell(part.profile or spec.profile, self.t)
        cells[UUID] = ScriptCell(part.uuid, self.t)
        cells[DRAM_ACTIVE] = ScriptCell(None, self.t, "blank")
        return cells

    def _play(self, use: Iterable[str], own: Fields) -> dict[int, ScriptCell]:
        scripts: dict[int, tuple[Field, Script]] = {}
        for given in (*(self.document.values[name] for name in use), own):
            for key, script in given.items():
                field = field_of(key)
                assert field is not None
                scripts[field.id] = field, script
        return {number: _typed(field, value_at(script, self.t)) for number, (field, script) in scripts.items()}

    def _judge(self, address: str, cells: dict[int, ScriptCell], seen: str | None) -> CellMap:
        """The cells after the events that concern this entity."""
        for xid in self.xids:
            if xid.device == address:
                cells[XID] = ScriptCell(xid.xid, xid.at)
        for event in self.document.events:
            if isinstance(event, Cells) and _on(event, self.t) and address in (event.devices or (address,)):
                for number in {f.id for f in map(field_of, event.fields) if f} or cells.keys() - IDENTITY:
                    cells[number] = _spoilt(event, cells.get(number), self.t)
        if seen:
            gone = ScriptCell(None, self.t, status=GPU_LOST) if seen == "status" else ScriptCell(None, self.t, "blank")
            return {number: cell if number in IDENTITY else gone for number, cell in cells.items()}
        return cells


def _spoilt(event: Cells, cell: ScriptCell | None, t: float) -> ScriptCell:
    if event.stale:
        return replace(cell, stamp=min(cell.stamp, event.at)) if cell else ScriptCell(None, event.at, "blank")
    return ScriptCell(None, t, event.sentinel, event.status)


def _typed(field: Field, cell: ScriptCell) -> ScriptCell:
    """The cell with a value of the field's type; a new one only where the type is another."""
    value = cell.value
    if field.kind == "int" and isinstance(value, float):
        return ScriptCell(round(value), cell.stamp)
    if field.kind == "float" and isinstance(value, int):
        return ScriptCell(float(value), cell.stamp)
    if field.unit == "watts" and isinstance(value, float):
        return ScriptCell(round(value, WATT_DIGITS), cell.stamp)
    return cell


def _board_identity(board: Board, versions: Versions, t: float, *, mig: bool | None) -> dict[int, ScriptCell]:
    major, minor = board.compute_capability
    known: dict[int, int | str | None] = {
        1: versions.driver,
        2: versions.nvml,
        5: versions.cuda,
        NAME: board.model,
        52: board.index,
        SERIAL: board.serial or None,
        UUID: board.uuid,
        55: board.device_minor,
        BUS_ID: board.pci_bus_id,
        63: (major << 16) + minor,
        67: None if mig is None else int(mig),
        69: None if mig is None else board.max_slices,
        VBIOS: board.vbios or None,
    }
    absent = ScriptCell(None, t, "not_supported")
    return {number: absent if value is None else ScriptCell(value, t) for number, value in known.items()}


def _framebuffer(cells: dict[int, ScriptCell], total: int, t: float) -> dict[int, ScriptCell]:
    """The cells with what follows from total, used and reserved framebuffer (MiB), where nothing else is given."""
    cells.setdefault(FB_TOTAL, ScriptCell(total, t))
    used, reserved = cells.get(FB_USED), cells.get(FB_RESERVED, ScriptCell(0, t))
    if used and isinstance(used.value, int) and isinstance(reserved.value, int):
        usable = max(total - reserved.value, 1)
        cells.setdefault(FB_FREE, replace(used, value=max(usable - used.value, 0)))
        cells.setdefault(FB_USED_RATIO, replace(used, value=used.value / usable))
    return cells
