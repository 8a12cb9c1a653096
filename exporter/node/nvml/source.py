"""Device readings from NVML: what the driver itself tells, without a DCGM engine and without its privileges.

Runs in the reader child. A field that NVML does not have is counted as not supported, never invented; a lost board
goes to `down` while the others are read.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from exporter.node.dcgm.values import age_limit
from exporter.node.devices.read_plan import Request, plan
from exporter.node.devices.readings import Device, ReaderConfig, Readings
from exporter.node.nvml import gpm
from exporter.node.nvml.batches import assemble
from exporter.node.nvml.device_reader import BoardReader, system_answers
from exporter.node.nvml.discovery import Found, Inventory, Place
from exporter.node.nvml.session import Session
from exporter.node.nvml.values import Answer, BoardLostError
from exporter.node.nvml.xid_events import XidEvents
from exporter.source import SourceError

REOPEN = 60.0
"""Seconds between attempts to find a board that is lost, closed to us or not there: only a new session with the
library lists it anew."""

XID = 230

Answers = dict[int, dict[int, Answer | None]]
"""By inventory index, by field id."""


class NvmlSource:
    """The `DeviceSource` over NVML.

    `patience` bounds the wait (seconds) for the second sample of engine activity when something is sampled for the
    first time; with 0 its first pass has none.
    """

    name = "nvml"

    def __init__(
        self,
        config: ReaderConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        patience: float = gpm.SHORTEST,
    ) -> None:
        self._wanted = {field.id: field for field in reversed(config.fields)}
        self._config, self._clock, self._wall, self._patience = config, clock, wall, patience
        self._session = Session(clock)
        self._inventory = Inventory()
        self._events = XidEvents(clock)
        self._reader = BoardReader(clock)
        self._reopen_at: float | None = None
        self._planned: tuple[tuple[Device, ...], tuple[Request, ...]] = ((), ())

    def read(self) -> Readings:
        """One pass over all boards.

        Raises SourceError with the reason library_missing, driver_not_loaded, driver_mismatch, no_permission,
        not_initialized, timeout or failed. After driver_mismatch only a new process can succeed.
        """
        self._look_for_more()
        self._session.open()
        try:
            return self._pass()
        except SourceError as error:
            self._let_go()
            raise self._session.failed(error) from None

    def close(self) -> None:
        self._let_go()
        self._session.close()

    def _let_go(self) -> None:
        self._events.close()
        self._reader.close()

    def _pass(self) -> Readings:
        taken_at = self._wall()
        found = self._inventory.look(self._session.versions.get("driver", ""))
        requests = self._plan(tuple(place.device for place in found.places))
        self._listen(found)
        answers = self._answers(found, requests)
        whole = bool(found.places) and not found.down and not found.problems
        self._reopen_at = None if whole else (self._reopen_at or self._clock() + REOPEN)
        return self._readings(taken_at, found, requests, answers)

    def _plan(self, inventory: tuple[Device, ...]) -> tuple[Request, ...]:
        if inventory != self._planned[0]:
            self._planned = inventory, plan(inventory, self._config.fields)
        return self._planned[1]

    def _look_for_more(self) -> None:
        if self._reopen_at is not None and self._clock() >= self._reopen_at:
            self._reopen_at = None
            self.close()

    def _listen(self, found: Found) -> None:
        if XID in self._wanted:
            boards = [(p.device.uuid, p.board) for p in found.places if p.device.gi < 0 and p.board is not None]
            self._events.collect()
            self._events.watch(boards)

    def _answers(self, found: Found, requests: Sequence[Request]) -> Answers:
        """Everything asked for. Engine activity comes last: a first sample needs some time to the second."""
        places = found.places
        self._reader.keep([place.device for place in places if place.board is not None])
        activity = [request for request in requests if request.watch == "profiling"]
        begun = [self._begin(found, places[i]) for request in activity for i in request.devices]
        answers: Answers = {index: {} for index in range(len(places))}
        system = system_answers(self._session.versions) if any(f in self._wanted for f in (1, 2, 4, 5)) else {}
        for request in requests:
            if request.watch != "profiling":
                self._ask(found, request, answers, system)
        if any(begun):
            time.sleep(min(self._patience, self._reader.wait()))
        for request in activity:
            self._ask(found, request, answers, system)
        return answers

    def _begin(self, found: Found, place: Place) -> bool:
        return place.device.uuid not in found.down and self._reader.begin(place)

    def _ask(self, found: Found, request: Request, answers: Answers, system: Mapping[int, Answer]) -> None:
        for index in request.devices:
            place = found.places[index]
            if place.device.uuid in found.down:
                continue
            try:
                answers[index] |= self._reader.read(place, request.fields)
            except BoardLostError:
                found.down.add(place.device.uuid)
                continue
            answers[index] |= {field: value for field, value in system.items() if field in request.fields}
            if XID in request.fields:
                age = age_limit(self._wanted[XID], self._config.interval)
                answers[index][XID] = self._events.last(place.device.uuid, age)

    def _readings(self, taken_at: float, found: Found, requests: Sequence[Request], answers: Answers) -> Readings:
        inventory = tuple(place.device for place in found.places)
        # A board that fell silent in the middle shows nothing of what was read before.
        alive = {i: answer for i, answer in answers.items() if inventory[i].uuid not in found.down}
        blocks, rejections = assemble(requests, alive, self._wanted)
        return Readings(
            source=self.name,
            taken_at=taken_at,
            inventory=inventory,
            blocks=blocks,
            rejections=rejections,
            down=tuple(device.uuid for device in inventory if device.gi < 0 and device.uuid in found.down),
            problems=tuple(found.problems),
            versions=dict(self._session.versions),
        )
