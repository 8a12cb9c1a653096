"""What the tests of the NVML source share: a clock to turn, a scenario to change, cells by what they belong to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from exporter.node.devices.field import fields
from exporter.node.devices.readings import Cell, ReaderConfig, Readings
from exporter.node.simulation.document import Event
from exporter.node.simulation.scenario import Scenario, load

Key = tuple[str, int, int, int]
ALL = tuple(sorted(fields()))


@dataclass
class Clock:
    """Seconds that pass only when told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def config(ids: Iterable[int] = ALL) -> ReaderConfig:
    return ReaderConfig(source="nvml", fields=tuple(fields()[i].wanted() for i in ids), interval=1.0)


def with_events(name: str, *events: Event) -> Scenario:
    """A built-in scenario with these events and none of its own."""
    return Scenario(name, msgspec.structs.replace(load(name).document, events=events))


def cells(readings: Readings) -> dict[Key, Cell]:
    """Every cell by (uuid, gi, ci, field); no pair may be there twice."""
    found: dict[Key, Cell] = {}
    for block in readings.blocks:
        for field, column in zip(block.fields, block.columns, strict=True):
            for index, value in zip(block.devices, column, strict=True):
                device = readings.inventory[index]
                key = (device.uuid, device.gi, device.ci, field)
                assert key not in found
                found[key] = value
    return found


def column(readings: Readings, field: int) -> Sequence[Cell]:
    """One field of every device that was asked, in the order of the inventory."""
    return [value for key, value in cells(readings).items() if key[3] == field]


def counted(readings: Readings, field: int) -> dict[str, int]:
    """Why cells of a field are missing, and how many."""
    return {rejection.reason: rejection.count for rejection in readings.rejections if rejection.field == field}
