"""What the configuration file says, beside the flags."""

from dataclasses import dataclass
from pathlib import Path

from exporter.node.devices.counters.raw_row import RawRow
from exporter.node.devices.counters.watch_intervals import WatchInterval


@dataclass(frozen=True, slots=True)
class FieldList:
    """The fields that the configuration file itself lists, in place of a counters file."""

    file: str
    """For messages."""
    rows: tuple[RawRow, ...]
    sha256: str
    """Of the whole file."""


@dataclass(frozen=True, slots=True)
class NodeConfigFile:
    """What the file says; None and empty where it says nothing."""

    counters_file: Path | None = None
    fields: FieldList | None = None
    interval: float | None = None
    """Seconds between samples of the fields that are in no group."""
    groups: tuple[WatchInterval, ...] = ()
    warnings: tuple[str, ...] = ()
