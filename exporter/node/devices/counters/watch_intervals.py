"""How often each field is sampled where the configuration file has watch groups. No I/O, no state.

In: the rows of the counters file and the watch groups. Out: the fields with their intervals, and what does not fit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.fields.device_source import WantedField


@dataclass(frozen=True, slots=True)
class WatchInterval:
    """A watch group of the configuration file: fields that are sampled at an interval of their own."""

    name: str
    seconds: float
    patterns: tuple[str, ...]
    """Names of fields as the counters file spells them; `*` stands for any characters and `?` for one."""
    place: str = ""
    """File and line, for messages."""

    def has(self, field: str) -> bool:
        """Whether a field of this name is in the group."""
        return any(fnmatchcase(field, pattern) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often is read, and how often fields are sampled. All in seconds."""

    collection: float
    """Between collections: the shortest of all intervals, because a value is exposed as it was at a collection."""
    default: float
    """Between samples of the fields that are in no group."""
    groups: tuple[WatchInterval, ...] = ()


def pace_of(default: float, groups: Sequence[WatchInterval]) -> Pace:
    """The pace of these groups, and of an interval for all other fields."""
    return Pace(min([default, *(group.seconds for group in groups)]), default, tuple(groups))


def wanted_at(pace: Pace, counters: Counters) -> tuple[WantedField, ...]:
    """What a source has to read, with the interval of each field where that is not the collection interval.

    Profiling fields are sampled together, at the shortest of their intervals: before Hopper the hardware counters serve
    one set of them at a time.
    """
    wanted = counters.wanted
    seconds = {row.field.id: _interval(pace, row.name) for row in reversed(counters.rows)}
    profiling = [seconds.get(field.id, pace.default) for field in wanted if field.watch == "profiling"]
    return tuple(
        _at(field, min(profiling) if field.watch == "profiling" else seconds.get(field.id, pace.default), pace)
        for field in wanted
    )


def mismatches(pace: Pace, counters: Counters) -> Iterator[str]:
    """One message for each pattern without a field, and for each field of two groups."""
    names = [row.name for row in counters.rows]
    for group in pace.groups:
        for pattern in group.patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                yield f"{group.place}: no row of the counters file has a name like {pattern!r} of {group.name!r}"
    for name in names:
        groups = [group.name for group in pace.groups if group.has(name)]
        if len(groups) > 1:
            yield f"{name} is in the watch groups {', '.join(map(repr, groups))}; the first one counts"


def _interval(pace: Pace, name: str) -> float:
    return next((group.seconds for group in pace.groups if group.has(name)), pace.default)


def _at(field: WantedField, seconds: float, pace: Pace) -> WantedField:
    return field if seconds == pace.collection else msgspec.structs.replace(field, interval=seconds)
