"""Makes the watches of one connection: the engine then samples these fields of these entities on a timer, for us.

A watch refers to an entity group and a field group, which are made and destroyed here too. Fields that an engine does
not support are found by trial.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import EngineConnection
from exporter.node.dcgm.library import StatusError
from exporter.node.devices.device_source import WatchGroup
from exporter.node.devices.validity import EVENT_SECONDS, MAX_AGE_INTERVALS

Entities = tuple[tuple[int, int], ...]

_UNKNOWN_FIELD = frozenset({layout.BAD_PARAMETER, layout.UNKNOWN_FIELD, layout.FIELD_UNSUPPORTED})
_UNSUPPORTED_FIELD: Mapping[WatchGroup, frozenset[int]] = {
    "basic": _UNKNOWN_FIELD | {layout.NOT_SUPPORTED, layout.NO_PERMISSION, layout.REQUIRES_ROOT},
    "event": _UNKNOWN_FIELD | {layout.NOT_SUPPORTED, layout.NO_PERMISSION, layout.REQUIRES_ROOT},
    "profiling": _UNKNOWN_FIELD,
}
"""Statuses of a watch that one field can cause. Every other status of a profiling watch concerns all its fields."""
_NAME_ATTEMPTS = 3
_MIN_PROFILING_INTERVAL = 1.0
"""Seconds. Before Hopper, fields that do not fit into one group of hardware counters take turns within an interval: a
shorter one costs more and gives no better values."""
_MIN_KEEP_SECONDS = 60.0


class Watches:
    """All groups and watches of one connection. Groups of the same entities, and of the same fields, are made once.

    An engine has 64 entity groups and 64 field groups for all of its clients together (header), of which 61 of each
    can be made (4.6.0, measured).
    """

    def __init__(self, connection: EngineConnection, interval: float) -> None:
        """`interval` is in seconds: how often the engine samples what is watched."""
        self._connection, self._interval = connection, interval
        self._entity_groups: dict[Entities, int] = {}
        self._field_groups: dict[tuple[int, ...], int] = {}
        self._watched: list[tuple[int, int]] = []
        self.unsupported: dict[tuple[int, int], StatusError] = {}
        """By entity kind and field: what this engine does not watch, found by trial, and its answer."""

    def watch_supported(self, entities: Entities, fields: Sequence[int], watch: WatchGroup) -> tuple[int, ...]:
        """Watch those of the fields that the engine supports, and return them. All entities are of one kind.

        The others are remembered as unsupported. Raises StatusError when the failure is not due to a field.
        """
        wanted = tuple(field for field in fields if (entities[0][0], field) not in self.unsupported)
        if not wanted:
            return ()
        try:
            self.watch(entities, wanted, watch)
        except StatusError as error:
            if error.status not in _UNSUPPORTED_FIELD[watch]:
                raise
            if len(wanted) == 1:
                self.unsupported[entities[0][0], wanted[0]] = error
                return ()
            # The status does not name the field, and no call of libdcgm lists the fields of an engine: field metadata
            # (DcgmFieldGetById) are the library's own, which can be of another version (source). So trials find out.
            self._find_unsupported(entities, wanted, watch)
            return self.watch_supported(entities, wanted, watch)
        return wanted

    def watch(self, entities: Entities, fields: tuple[int, ...], watch: WatchGroup) -> None:
        """Watch exactly these fields. When one cannot be watched, none is (4.6.0, source). Raises StatusError.

        That is why basic, profiling and event fields are watched by calls of their own.
        """
        groups = self._entity_group(entities), self._field_group(fields)
        interval = max(self._interval, _MIN_PROFILING_INTERVAL) if watch == "profiling" else self._interval
        keep = EVENT_SECONDS if watch == "event" else max(MAX_AGE_INTERVALS * interval, _MIN_KEEP_SECONDS)
        # The interval is in microseconds, the time to keep samples in seconds. The engine keeps them for the longest of
        # that time, the number of samples times the interval, and 1 s (4.6.0, source): 0 samples adds nothing. It reads
        # watched fields once before this call returns, except profiling fields: those are blank until one interval
        # later (4.6.0, measured).
        self._connection.call("dcgmWatchFields", *groups, round(interval * 1e6), keep, 0)
        self._watched.append(groups)

    def close(self) -> None:
        """Remove every watch and group. Never raises: an engine that is gone has forgotten them anyway.

        A field that is read after its unwatch has its last value with an old timestamp and status OK (4.6.0,
        measured), so only its age shows that it is not updated any more.
        """
        # Watches first: they refer to the groups.
        for entity_group, field_group in self._watched:
            self._connection.status("dcgmUnwatchFields", entity_group, field_group)
        for field_group in self._field_groups.values():
            self._connection.status("dcgmFieldGroupDestroy", field_group)
        for entity_group in self._entity_groups.values():
            self._connection.status("dcgmGroupDestroy", entity_group)
        self._watched, self._field_groups, self._entity_groups = [], {}, {}

    def _find_unsupported(self, entities: Entities, fields: tuple[int, ...], watch: WatchGroup) -> None:
        """Try halves of the fields until each unsupported one is found alone. No watch of a trial remains."""
        middle = len(fields) // 2
        for half in (fields[:middle], fields[middle:]):
            try:
                self.watch(entities, half, watch)
            except StatusError as error:
                if error.status not in _UNSUPPORTED_FIELD[watch]:
                    raise
                if len(half) == 1:
                    self.unsupported[entities[0][0], half[0]] = error
                else:
                    self._find_unsupported(entities, half, watch)
            else:
                # An engine has one watch per connection, entity and field (4.6.0, measured), whatever groups it was
                # made with. So the trial's watch ends before the final one begins, not after it.
                self._connection.status("dcgmUnwatchFields", *self._watched.pop())
            self._destroy_field_group(half)

    def _entity_group(self, entities: Entities) -> int:
        if entities not in self._entity_groups:
            group = ctypes.c_size_t()
            self._create("dcgmGroupCreate", group, layout.GROUP_EMPTY)
            self._entity_groups[entities] = group.value
            for kind, number in entities:
                # A GPU in state 2 (unsupported) is rejected with -22, one in state 4 (lost) with -18 (4.6.0, measured).
                self._connection.call("dcgmGroupAddEntity", group, kind, number)
        return self._entity_groups[entities]

    def _field_group(self, fields: tuple[int, ...]) -> int:
        if fields not in self._field_groups:
            group, ids = ctypes.c_size_t(), layout.field_array(fields)
            # One id that the engine does not know fails the whole group, with -1 (4.6.0, measured).
            self._create("dcgmFieldGroupCreate", group, len(fields), ids)
            self._field_groups[fields] = group.value
        return self._field_groups[fields]

    def _destroy_field_group(self, fields: tuple[int, ...]) -> None:
        group = self._field_groups.pop(fields, None)
        if group is not None:
            self._connection.status("dcgmFieldGroupDestroy", group)

    def _create(self, function: str, group: ctypes.c_size_t, *arguments: object) -> None:
        """Create a group under a name that is in use nowhere. Raises StatusError.

        Names of field groups are unique across all clients of an engine (4.6.0, measured), and process ids repeat
        between the containers of a node: hence the random part.
        """
        for last in (False,) * (_NAME_ATTEMPTS - 1) + (True,):
            name = f"gpugauge-{os.getpid()}-{os.urandom(4).hex()}".encode()
            status = self._connection.status(function, *arguments, name, ctypes.byref(group))
            if status == layout.OK:
                return
            if last or status != layout.DUPLICATE_KEY:
                raise StatusError(function, status)
