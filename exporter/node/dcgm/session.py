"""The life of one connection: discover, watch, read, and start over when the devices are other ones."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import Connection
from exporter.node.dcgm.discovery import Inventory, LiveValues, Shape, shape, take_inventory
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.profiling import Refusal, Retry, watch_profiling
from exporter.node.dcgm.reads import Call, Target, calls_of, targets_of
from exporter.node.dcgm.values import status_reason
from exporter.node.dcgm.watch import Watches
from exporter.node.devices.read_plan import plan, unique
from exporter.node.devices.readings import (
    Block,
    Cell,
    Device,
    ReaderConfig,
    Readings,
    Rejection,
    RejectReason,
    WantedField,
)

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two attempts to cure unwatched or old cells by watching anew."""

Counts = Counter[tuple[int, RejectReason]]


@dataclass(frozen=True, slots=True)
class Clocks:
    """`wall` gives Unix seconds, to judge the age of values; `steady` never jumps, to measure pauses."""

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class _Layout:
    """What is read in every pass until the devices change."""

    inventory: Inventory
    calls: tuple[Call, ...]
    fixed: tuple[Block, ...]
    """The node's own values, such as the driver's version: they change only with the engine's life."""
    missing: Counts
    """Cells that are never asked for because the engine refused their fields."""


class Session:
    """Reads through one connection. After any SourceError it is done for: close it and open another."""

    def __init__(self, connection: Connection, config: ReaderConfig, known: dict[str, Device], clocks: Clocks) -> None:
        self._connection, self._config, self._known = connection, config, known
        self._clocks, self._live = clocks, LiveValues(connection, clocks.wall)
        self._wanted = {field.id: field for field in unique(config.fields)}
        self._watches = Watches(connection, config.interval)
        self._shape: Shape | None = None
        self._layout = _Layout(Inventory((), (), {}, (), ()), (), (), Counter())
        self._targets: list[Target] = []
        self._taken: list[Target] = []
        self._refusals: list[Refusal] = []
        self._retry = Retry(clocks.steady)
        self._suspect, self._watched_at, self._pause = False, 0.0, FIRST_PAUSE
        self._versions: dict[str, str] = {}

    def read(self) -> Readings:
        """One pass. Raises SourceError."""
        taken_at = self._clocks.wall()
        self._follow(shape(self._connection))
        counts: Counts = Counter(self._layout.missing)
        blocks = [*self._layout.fixed]
        suspect = not self._layout.inventory.complete
        for call in self._layout.calls:
            block, decoded = call.read(self._connection, self._clocks.wall)
            blocks.append(block)
            counts.update(decoded.rejected)
            suspect = suspect or decoded.suspect
        self._suspect = suspect
        if not suspect:
            self._pause = FIRST_PAUSE
        return Readings(
            source="dcgm",
            taken_at=taken_at,
            inventory=self._layout.inventory.devices,
            blocks=tuple(blocks),
            rejections=tuple(Rejection(*key, count) for key, count in sorted(counts.items())),
            down=self._layout.inventory.down,
            problems=self._problems(),
            versions=self._versions,
        )

    def close(self) -> None:
        """Takes back every watch and group, then the connection. Never raises."""
        self._watches.close()
        self._connection.close()

    def _follow(self, seen: Shape) -> None:
        if seen != self._shape:
            self._shape = None  # a failure half-way must not look like a finished one
            self._discover(seen)
            self._shape = seen
        elif self._suspect and self._clocks.steady() - self._watched_at >= self._pause:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            self._discover(seen)
        elif self._retry.due:
            self._watch_refused()

    def _discover(self, seen: Shape) -> None:
        node = self._of_node(self._system_fields())
        driver = str(node.get(layout.FIELD_DRIVER_VERSION) or "")
        inventory = take_inventory(self._connection, seen, self._known, driver, self._live)
        self._known.update({device.uuid: device for device in inventory.devices if device.gi < 0})
        self._versions = {
            "dcgm": self._connection.engine_version or self._connection.library.version,
            "nvml": str(node.get(layout.FIELD_NVML_VERSION) or ""),
            "driver": driver,
        }
        self._layout = _Layout(inventory, (), _fixed(inventory, node, self._wanted), Counter())
        self._watch()

    def _watch(self) -> None:
        """Watches everything wanted of the devices of now, basic fields first."""
        self._watches.close()
        inventory = self._layout.inventory
        self._targets = targets_of(inventory, plan(inventory.devices, self._config.fields), self._wanted)
        self._taken, self._refusals = [], []
        self._watch_more(sorted(self._targets, key=lambda target: target.watch == "profiling"))
        self._watched_at = self._clocks.steady()

    def _watch_refused(self) -> None:
        """Asks again for the profiling that was refused; everything else goes on as it is."""
        refused, self._refusals = self._refusals, []
        whole = [target for target in self._targets if target.watch == "profiling"]
        owners = {entity: owner for target in whole for entity, owner in target.owned()}
        again = [
            Target("profiling", refusal.entities, tuple(owners[entity] for entity in refusal.entities), refusal.fields)
            for refusal in refused
        ]
        self._watch_more(again)

    def _watch_more(self, targets: Sequence[Target]) -> None:
        step = layout.ENTITIES_PER_CALL[self._connection.library.major]
        for target in targets:
            for part in target.chunks(step):
                taken, refused = self._accepted(part)
                self._taken += taken
                self._refusals += refused
        self._retry.plan(self._refusals)
        calls = tuple(calls_of(self._taken, self._wanted, self._config.interval))
        self._layout = replace(self._layout, calls=calls, missing=self._missing())

    def _accepted(self, target: Target) -> tuple[list[Target], list[Refusal]]:
        if target.watch == "profiling":
            boards = [self._layout.inventory.devices[owner].index for owner in target.owners]
            taken, refused = watch_profiling(self._watches, target.entities, target.fields, boards)
            return [target.only(entities, fields) for entities, fields in taken], refused
        fields = self._watches.watch_accepted(target.entities, target.fields, target.watch)
        return [target.only(target.entities, fields)] if fields else [], []

    def _of_node(self, fields: Sequence[WantedField]) -> dict[int, Cell]:
        """The node's own values; a field that the engine does not know fails the whole read, so halves are tried."""
        try:
            return {field: cell for (_, _, field), cell in self._live([(layout.ENTITY_NONE, 0)], fields).items()}
        except StatusError as error:
            if error.status not in (layout.GENERIC_ERROR, layout.BAD_PARAMETER, layout.UNKNOWN_FIELD):
                raise
            if len(fields) == 1:
                return {fields[0].id: None}
        middle = len(fields) // 2
        return self._of_node(fields[:middle]) | self._of_node(fields[middle:])

    def _system_fields(self) -> list[WantedField]:
        wanted = {field.id: field for field in self._wanted.values() if field.scope == "system"}
        for number in (layout.FIELD_DRIVER_VERSION, layout.FIELD_NVML_VERSION):
            wanted.setdefault(number, WantedField(number, "string", "system", "basic"))
        return list(wanted.values())

    def _missing(self) -> Counts:
        counts: Counts = Counter()
        for block in self._layout.fixed:
            for field, column in zip(block.fields, block.columns, strict=True):
                if self._wanted[field].watch != "event" and None in column:
                    counts[field, "not_supported"] += len(column)
        for target in self._targets:
            for field in target.fields:
                error = self._watches.refused.get((target.entities[0][0], field))
                if error is not None:
                    reason = status_reason(error.status)
                    counts[field, "not_supported" if reason in (None, "blank") else reason] += len(target.devices)
        for refusal in self._refusals:
            for field in refusal.fields:
                counts[field, status_reason(refusal.error.status) or "blank"] += len(refusal.entities)
        return counts

    def _problems(self) -> tuple[tuple[str, str], ...]:
        """One sentence per reason."""
        problems = [*self._layout.inventory.problems, *(refusal.problem for refusal in self._refusals)]
        if self._watches.refused:
            numbers = ", ".join(map(str, sorted({field for _, field in self._watches.refused})))
            problems.append(("unknown_field", f"the engine refuses to watch these fields: {numbers}"))
        if self._is_newer_than_engine():
            library, engine = self._connection.library.version, self._connection.engine_version
            sentence = f"libdcgm {library} is newer than the engine {engine}, which may not understand it"
            problems.append(("library_newer_than_engine", sentence))
        return tuple({reason: (reason, sentence) for reason, sentence in reversed(problems)}.values())

    def _is_newer_than_engine(self) -> bool:
        engine = self._connection.engine_version
        return bool(engine) and _release(self._connection.library.version) > _release(engine)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _fixed(inventory: Inventory, node: Mapping[int, Cell], wanted: Mapping[int, WantedField]) -> tuple[Block, ...]:
    """The node's own values on every board that can be asked."""
    boards = tuple(index for index in inventory.readable if inventory.devices[index].gi < 0)
    fields = tuple(field.id for field in wanted.values() if field.scope == "system")
    if not boards or not fields:
        return ()
    return (Block(boards, fields, tuple((node.get(field),) * len(boards) for field in fields)),)
