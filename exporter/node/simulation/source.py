"""The simulated source: plays a scenario without any library, with the same plan and judgements as the real ones."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from exporter.node.dcgm.values import age_limit
from exporter.node.devices.read_plan import Request, plan
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
from exporter.node.simulation.document import Call
from exporter.node.simulation.scenario import load
from exporter.node.simulation.script import ScriptCell
from exporter.node.simulation.state import BoardState, CellMap, InstanceState, State
from exporter.source import SourceError

READ_CALLS = frozenset({"*", "read", "dcgmEntitiesGetLatestValues"})
"""Functions whose faults in a scenario hit a read of this source; of several the first, as in a stand-in."""
REASONS: dict[int, RejectReason] = {
    -6: "not_supported",
    -13: "not_supported",
    -15: "stale",
    -17: "no_permission",
    -45: "not_found",
    -46: "not_found",
}
"""DCGM status of a value to why it is not shown; any other is a blank."""

Counts = Counter[tuple[int, RejectReason]]


class SimulatedSource:
    """A DeviceSource that plays `config.scenario`, or the built-in one.

    Raises ScenarioError (a ValueError) when the scenario cannot be played. `clock` gives Unix seconds.
    """

    name = "simulated"

    def __init__(self, config: ReaderConfig, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._scenario = load(config.scenario)
        self._begin = self._scenario.begins(clock())

    def read(self) -> Readings:
        """The scenario as of now. Raises SourceError: `connection_lost` while nothing answers, `call` for a fault."""
        now = self._clock()
        state = self._scenario.at(now - self._begin)
        fault = next((call for call in state.calls if call.function in READ_CALLS), None)
        if fault is not None:
            _suffer(fault)
        if not state.connected:
            raise SourceError("connection_lost", "the scenario's engine cannot be reached")
        return readings(state, self._config, now)

    def close(self) -> None:
        """Nothing is held open."""


def _suffer(call: Call) -> None:
    if call.crash:
        os.abort()
    if call.delay or call.hang:
        threading.Event().wait(None if call.hang else call.delay)
    if call.status:
        raise SourceError("call", f"the scenario lets {call.function} fail with {call.status}")


def readings(state: State, config: ReaderConfig, now: float) -> Readings:
    """What a real source would make of that state; `now` in Unix seconds."""
    entities = [entity for board in state.boards for entity in _entities(board, state)]
    inventory = tuple(device for device, _ in entities)
    wanted = {field.id: field for field in reversed(config.fields)}
    down = {board.spec.uuid for board in state.boards if board.lost}
    counts: Counts = Counter()
    oldest = {number: state.t - age_limit(field, config.interval) for number, field in wanted.items()}
    blocks = []
    for request in plan(inventory, config.fields):
        if asked := tuple(index for index in request.devices if inventory[index].uuid not in down):
            columns = _columns(request, [entities[index][1] for index in asked], wanted, oldest, counts)
            blocks.append(Block(asked, request.fields, columns))
    return Readings(
        source="simulated",
        taken_at=now,
        inventory=inventory,
        blocks=tuple(blocks),
        rejections=tuple(Rejection(field, reason, n) for (field, reason), n in sorted(counts.items())),
        down=tuple(board.spec.uuid for board in state.boards if board.lost),
        versions={
            "dcgm": state.versions.dcgm,
            "nvml": state.versions.nvml,
            "driver": state.versions.driver,
        },
    )


def _entities(board: BoardState, state: State) -> Iterator[tuple[Device, CellMap]]:
    yield _device(board, state), board.cells
    for instance in board.instances:
        uuids = tuple(part.spec.uuid for part in instance.compute)
        yield _device(board, state, instance, uuids=uuids), instance.cells
        if len(instance.compute) > 1:
            for part in instance.compute:
                profile = part.spec.profile or instance.spec.profile
                yield (
                    _device(board, state, instance, ci=part.spec.ci, profile=profile, uuids=(part.spec.uuid,)),
                    part.cells,
                )


def _device(
    board: BoardState,
    state: State,
    instance: InstanceState | None = None,
    *,
    ci: int = -1,
    profile: str = "",
    uuids: tuple[str, ...] = (),
) -> Device:
    spec = board.spec
    return Device(
        uuid=spec.uuid,
        index=spec.index,
        pci_bus_id=spec.pci_bus_id,
        minor=spec.device_minor,
        model=spec.model,
        gi=instance.spec.gi if instance else -1,
        ci=ci,
        profile=profile or (instance.spec.profile if instance else ""),
        mig_uuids=uuids,
        serial=spec.serial,
        architecture=spec.architecture,
        driver_version=state.versions.driver,
        mig_enabled=board.mig,
        numa_node=spec.numa_node,
    )


def _columns(
    request: Request,
    cells: Sequence[CellMap],
    wanted: dict[int, WantedField],
    oldest: dict[int, float],
    counts: Counts,
) -> tuple[tuple[Cell, ...], ...]:
    columns = []
    for number in request.fields:
        judged = [judge(wanted[number], entity.get(number), oldest[number]) for entity in cells]
        counts.update((number, reason) for _, reason in judged if reason)
        columns.append(tuple(value for value, _ in judged))
    return tuple(columns)


def judge(field: WantedField, cell: ScriptCell | None, oldest: float) -> tuple[Cell, RejectReason | None]:
    """The value to show, or None and why; without a reason where nothing is wrong: no event, or an old one.

    `oldest` is the scenario time before which a sample no longer tells how things are now.
    """
    event = field.watch == "event"
    if cell is None:
        return None, None if event else "not_supported"
    if cell.status:
        return None, REASONS.get(cell.status, "blank")
    if cell.sentinel or cell.value is None:
        return None, None if event and cell.sentinel == "blank" else cell.sentinel or "blank"
    if cell.stamp < oldest:
        return None, None if event else "stale"
    if field.high is not None and not isinstance(cell.value, str) and cell.value > field.high:
        return None, "out_of_range"
    return cell.value, None
