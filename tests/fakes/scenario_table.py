"""Plays a scenario into the flat table of table.h that the stand-in libraries read.

    python -m tests.fakes.scenario_table SCENARIO TABLE [INTERVAL]

plays until it is stopped; in tests `Player.tick(t)` writes one moment.
"""

import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct

from exporter.node.devices.field import Field, fields
from exporter.node.simulation.scenario import Scenario, load
from exporter.node.simulation.script import ScriptCell
from exporter.node.simulation.state import (
    DRAM_ACTIVE,
    UTILISATION,
    XID,
    BoardState,
    ComputeState,
    InstanceState,
    State,
)

VARIABLE = "GPUGAUGE_FAKE_TABLE"
MAGIC, VERSION = 0x54464747, 1
GPU, GI, CI = 1, 4, 5
OWN, PARENT, GI_ONLY, BLANK, SYSTEM = range(5)
LOST, OK = 4, 1

HEADER = Struct("<5IiqQ24I80s80s80s64x")
DEVICE = Struct("<IIiiIiIIiiQQ96s32s96s48s48s")
INSTANCE = Struct("<6I2i2I2Q2I64s128sQ")
CELL = Struct("<IIHHiq8s256s")
FAULT = Struct("<48siIIIQ")
FIELD = Struct("<6I48s")
EVENT = Struct("<4IqqQ")

TYPES = {"int": "i", "float": "d", "string": "s"}
SENTINELS = ("blank", "not_found", "not_supported", "no_permission")
BLANK_INT, BLANK_FLOAT = 0x7FFFFFFFFFFFFFF0, float(2**47)
BLANK_TEXT = ("<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>")
FB_USED_RATIO = 254
"""The double field whose sentinels the engine stores as integers."""

ARCHITECTURES = ("", "", "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
SINCE = {
    (3, 2): (157, 385, 386, 387, 388, 389),
    (3, 3): (285,),
    (4, 0): (94, 170, 171, 172, 173, 497, 498, 499, 1200, 1201, 1202, 1203, 1206, 1212, 1216),
    (4, 1): (153, 843, 897),
    (4, 2): (346, 1218, 1420, 1421, 1422, 1423, 1424),
    (4, 4): (1080, 1501),
    (4, 5): (6, 1220, 1507, 1523),
    (4, 6): (175, 1084, 1091, 1092),
}
"""The engine's version from which it knows these fields."""


class Player:
    """Writes moments of a scenario to `path`. Without an epoch the scenario begins when the player is made."""

    def __init__(self, scenario: Scenario, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.scenario = scenario
        self.path = path
        self._clock = clock
        self._begin = scenario.begins(clock())
        self._ticks = 0

    def tick(self, t: float | None = None) -> State:
        """Replaces the table by the moment t (seconds from the beginning; None is now) and gives its state."""
        now = self._clock() if t is None else self._begin + t
        state = self.scenario.at(now - self._begin)
        self._ticks += 1
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.{threading.get_ident()}.new")
        draft.write_bytes(table(state, now, self._ticks))
        draft.replace(self.path)
        return state

    @contextmanager
    def run(self, interval: float = 0.2) -> Iterator["Player"]:
        """Ticks in a thread of its own while the block runs."""
        self.tick()
        stop = threading.Event()
        thread = threading.Thread(target=self._loop, args=(interval, stop), name="player")
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join()

    def _loop(self, interval: float, stop: threading.Event) -> None:
        while not stop.wait(interval):
            self.tick()


def table(state: State, now: float, tick: int = 1) -> bytes:
    """The table of a state; `now` is its Unix time in seconds."""
    moment = _Moment(state, now)
    sections = (
        (DEVICE, [moment.device(board) for board in state.boards]),
        (INSTANCE, [row for board in state.boards for row in moment.instances(board)]),
        (CELL, [row for _, row in sorted(moment.cells(), key=lambda cell: cell[0])]),
        (FAULT, list(moment.faults())),
        (FIELD, [field_row(field) for field in known_fields(state.versions.dcgm)]),
        (EVENT, list(moment.events())),
    )
    places, offset = [], HEADER.size
    for layout, rows in sections:
        places += [offset, len(rows), layout.size, 0]
        offset += len(rows) * layout.size
    versions = state.versions
    header = HEADER.pack(
        MAGIC,
        VERSION,
        state.generation,
        state.link,
        state.connected,
        versions.cuda,
        round(now * 1e6),
        tick,
        *places,
        *(text.encode() for text in (versions.driver, versions.nvml, versions.dcgm)),
    )
    return header + b"".join(row for _, rows in sections for row in rows)


def known_fields(version: str) -> list[Field]:
    """What an engine of that version knows, by id."""
    major, minor = (int(part) for part in version.split(".")[:2])
    later = {number for since, numbers in SINCE.items() if since > (major, minor) for number in numbers}
    return sorted((f for f in fields().values() if f.id not in later), key=lambda field: field.id)


def field_row(field: Field) -> bytes:
    level, mig = _level(field)
    tag = field.names[0].removeprefix("DCGM_FI_").lower().encode()[:47]
    kind = ord(TYPES[field.kind])
    return FIELD.pack(field.id, kind, level, mig, field.watch == "profiling", field.watch == "event", tag)


def _level(field: Field) -> tuple[int, int]:
    if field.scope == "system":
        return 0, SYSTEM
    if field.id == DRAM_ACTIVE:
        return GI, GI_ONLY
    if field.scope == "instance" or field.id == XID:
        return CI, OWN
    return GPU, BLANK if field.watch == "profiling" or field.id in UTILISATION else PARENT


class _Moment:
    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now

    def device(self, board: BoardState) -> bytes:
        spec = board.spec
        return DEVICE.pack(
            board.entity_id,
            spec.index,
            spec.device_minor,
            spec.numa_node,
            LOST if board.lost else OK,
            -1 if board.mig is None else int(board.mig),
            spec.max_slices,
            ARCHITECTURES.index(spec.architecture.lower()) if spec.architecture.lower() in ARCHITECTURES else 0,
            *spec.compute_capability,
            spec.memory_mib,
            self._identity(spec.uuid),
            *(text.encode() for text in (spec.uuid, spec.pci_bus_id, spec.model, spec.serial, spec.vbios)),
        )

    def instances(self, board: BoardState) -> Iterator[bytes]:
        for instance in board.instances:
            uuid = instance.spec.compute[0].uuid if len(instance.compute) == 1 else ""
            yield self._instance(board, instance, None, uuid)
            for part in instance.compute:
                yield self._instance(board, instance, part, part.spec.uuid)

    def _instance(self, board: BoardState, instance: InstanceState, part: ComputeState | None, uuid: str) -> bytes:
        one = part or instance
        profile = (part.spec.profile if part else "") or instance.spec.profile
        return INSTANCE.pack(
            CI if part else GI,
            one.entity_id,
            GI if part else GPU,
            instance.entity_id if part else board.entity_id,
            board.entity_id,
            instance.spec.gi,
            part.spec.ci if part else -1,
            part.mig_index if part else -1,
            0 if part else instance.spec.profile_id,
            part.spec.slices if part else instance.spec.slices,
            instance.spec.memory_mib,
            self._identity(one.identity),
            len(instance.compute) > 1,
            0,
            profile.encode(),
            uuid.encode(),
            0,
        )

    def _identity(self, text: str) -> int:
        return zlib.crc32(text.encode()) | self.state.generation << 32

    def cells(self) -> Iterator[tuple[tuple[int, int, int], bytes]]:
        for board in self.state.boards:
            yield from self._rows(GPU, board)
            for instance in board.instances:
                yield from self._rows(GI, instance)
                for part in instance.compute:
                    yield from self._rows(CI, part)

    def _rows(
        self, kind: int, entity: BoardState | InstanceState | ComputeState
    ) -> Iterator[tuple[tuple[int, int, int], bytes]]:
        for number, cell in entity.cells.items():
            yield (kind, entity.entity_id, number), self._cell(kind, entity.entity_id, number, cell)

    def _cell(self, kind: int, entity: int, number: int, cell: ScriptCell) -> bytes:
        type_, raw, text = encode(fields()[number], cell)
        return CELL.pack(kind, entity, number, ord(type_), cell.status, self._stamp(cell.stamp), raw, text)

    def _stamp(self, t: float) -> int:
        return round((self.now - (self.state.t - t)) * 1e6)

    def faults(self) -> Iterator[bytes]:
        for call in self.state.calls:
            name = call.function.encode()
            yield FAULT.pack(name, call.status, round(call.delay * 1000), call.hang, call.crash, 0)

    def events(self) -> Iterator[bytes]:
        found = {address: (kind, entity, gpu) for address, kind, entity, gpu in self._addresses()}
        for number, xid in enumerate(self.state.xids, start=1):
            if xid.device in found:
                yield EVENT.pack(*found[xid.device], XID, self._stamp(xid.at), xid.xid, number)

    def _addresses(self) -> Iterator[tuple[str, int, int, int]]:
        for board in self.state.boards:
            uuid, gpu = board.spec.uuid, board.entity_id
            yield uuid, GPU, gpu, gpu
            for instance in board.instances:
                yield f"{uuid}/{instance.spec.gi}", GI, instance.entity_id, gpu
                for part in instance.compute:
                    yield f"{uuid}/{instance.spec.gi}/{part.spec.ci}", CI, part.entity_id, gpu


def encode(field: Field, cell: ScriptCell) -> tuple[str, bytes, bytes]:
    """A cell as the library holds it: record type, the 8 bytes of its value, its text."""
    type_ = TYPES[field.kind]
    if cell.value is None:
        step = SENTINELS.index(cell.sentinel or "blank")
        if type_ == "s":
            return type_, bytes(8), BLANK_TEXT[step].encode()
        if type_ == "i" or field.id == FB_USED_RATIO:
            return "i", (BLANK_INT + step).to_bytes(8, "little"), b""
        return type_, Struct("<d").pack(BLANK_FLOAT + step), b""
    match cell.value:
        case str() as text:
            return "s", bytes(8), text.encode()[:255]
        case int() as number:
            return "i", number.to_bytes(8, "little", signed=True), b""
        case float() as number:
            return "d", Struct("<d").pack(number), b""


def main(arguments: list[str]) -> None:
    player = Player(load(arguments[0]), Path(arguments[1]))
    with player.run(float(arguments[2]) if len(arguments) > 2 else 0.2):
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
