"""What the tests of the NVML source share: scenarios with other events, and samples by device and field."""

from collections.abc import Iterable, Sequence

import msgspec

from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.fields.field import fields
from exporter.node.devices.readings.readings import Readings, SampleValue, XidReport
from exporter.node.nvml.source import NvmlSource
from exporter.node.simulation.document import ScenarioEvent
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.read_fields import READ
from tests.waiting import until

Key = tuple[str, int, int, int]
ALL = tuple(sorted(READ))


def config(ids: Iterable[int] = ALL) -> ReaderConfig:
    """Configure the source for these fields."""
    return ReaderConfig(source="nvml", fields=tuple(fields()[i].wanted() for i in ids), interval=1.0)


def with_events(name: str, *events: ScenarioEvent) -> Scenario:
    """Return a built-in scenario with these events instead of its own."""
    return Scenario(name, msgspec.structs.replace(load(name).document, events=events))


def samples(readings: Readings) -> dict[Key, SampleValue]:
    """Return every sample by (uuid, gi, ci, field); none may be there twice."""
    found: dict[Key, SampleValue] = {}
    for batch in readings.batches:
        for field, column in zip(batch.fields, batch.columns, strict=True):
            for index, value in zip(batch.devices, column, strict=True):
                device = readings.inventory[index]
                key = (device.uuid, device.gi, device.ci, field)
                assert key not in found
                found[key] = value
    return found


def column(readings: Readings, field: int) -> Sequence[SampleValue]:
    """Return one field of every device that it was read of, in the order of the inventory."""
    return [value for key, value in samples(readings).items() if key[3] == field]


def counted(readings: Readings, field: int) -> dict[str, int]:
    """Return how many values of a field were rejected, by reason."""
    return {rejection.reason: rejection.count for rejection in readings.rejections if rejection.field == field}


def wait_for_xids(source: NvmlSource, *codes: int) -> list[XidReport]:
    """Read until these XIDs, in any order, have been received, and return their reports."""
    reports: list[XidReport] = []

    def received() -> bool:
        reports.extend(source.read().xids)
        return sum(report.count for report in reports) >= len(codes)

    until(received)
    assert sorted(codes) == sorted(code for r in reports for code in [r.code] * r.count)
    return reports
