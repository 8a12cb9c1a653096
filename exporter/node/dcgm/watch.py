"""Entity groups, field groups and watches in an engine: what it samples for us, and how they are taken back."""

import ctypes
import os
from collections.abc import Mapping, Sequence

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import Connection
from exporter.node.dcgm.library import StatusError
from exporter.node.dcgm.values import EVENT_SECONDS
from exporter.node.devices.read_plan import Watch

Entities = tuple[tuple[int, int], ...]

_UNKNOWN = frozenset({layout.BAD_PARAMETER, layout.UNKNOWN_FIELD, layout.FIELD_UNSUPPORTED})
_REFUSED: Mapping[Watch, frozenset[int]] = {
    "basic": _UNKNOWN | {layout.NOT_SUPPORTED, layout.NO_PERMISSION, layout.REQUIRES_ROOT},
    "event": _UNKNOWN | {layout.NOT_SUPPORTED, layout.NO_PERMISSION, layout.REQUIRES_ROOT},
    "profiling": _UNKNOWN,
}
"""Answers that may be due to one field among many; in profiling the others concern all fields alike."""
_NAME_TRIES = 3
_LEAST_PROFILING_INTERVAL = 1.0
"""Seconds; profiling samples closer together say less than they cost."""


class Watches:
    """All groups and watches of one connection.

    Groups of the same entities and of the same fields are made once. Names carry the process id and a random part:
    an engine wants them unique across all of its clients.
    """

    def __init__(self, connection: Connection, interval: float) -> None:
        self._connection, self._interval = connection, interval
        self._entity_groups: dict[Entities, int] = {}
        self._field_groups: dict[tuple[int, ...], int] = {}
        self._watched: list[tuple[int, int]] = []
        self.refused: dict[tuple[int, int], StatusError] = {}
        """Entity kinds and fields that this engine does not take, found by trial, and what it answered."""

    def watch_accepted(self, entities: Entities, fields: Sequence[int], watch: Watch) -> tuple[int, ...]:
        """Watches what the engine takes of these fields and gives those; the others are remembered as refused.

        Raises StatusError when the trouble is not one of fields.
        """
        wanted = tuple(field for field in fields if (entities[0][0], field) not in self.refused)
        if not wanted:
            return ()
        try:
            self.watch(entities, wanted, watch)
        except StatusError as error:
            if error.status not in _REFUSED[watch]:
                raise
            if len(wanted) == 1:
                self.refused[entities[0][0], wanted[0]] = error
                return ()
            self._find_refused(entities, wanted, watch)
            return self.watch_accepted(entities, wanted, watch)
        return wanted

    def watch(self, entities: Entities, fields: tuple[int, ...], watch: Watch) -> None:
        """Watches exactly these fields; when one cannot be watched, none is. Raises StatusError."""
        pair = self._entity_group(entities), self._field_group(fields)
        interval = max(self._interval, _LEAST_PROFILING_INTERVAL) if watch == "profiling" else self._interval
        keep = EVENT_SECONDS if watch == "event" else max(3 * interval, 60.0)
        self._connection.call("dcgmWatchFields", *pair, round(interval * 1e6), keep, 0)
        self._watched.append(pair)

    def close(self) -> None:
        """Takes everything back, watches first. Never raises: a dead engine has forgotten them anyway."""
        for entity_group, field_group in self._watched:
            self._connection.status("dcgmUnwatchFields", entity_group, field_group)
        for field_group in self._field_groups.values():
            self._connection.status("dcgmFieldGroupDestroy", field_group)
        for entity_group in self._entity_groups.values():
            self._connection.status("dcgmGroupDestroy", entity_group)
        self._watched, self._field_groups, self._entity_groups = [], {}, {}

    def _find_refused(self, entities: Entities, fields: tuple[int, ...], watch: Watch) -> None:
        """Halves the fields until each refused one stands alone; leaves no trial behind."""
        middle = len(fields) // 2
        for half in (fields[:middle], fields[middle:]):
            try:
                self.watch(entities, half, watch)
            except StatusError as error:
                if error.status not in _REFUSED[watch]:
                    raise
                if len(half) == 1:
                    self.refused[entities[0][0], half[0]] = error
                else:
                    self._find_refused(entities, half, watch)
            else:
                self._connection.status("dcgmUnwatchFields", *self._watched.pop())
            self._drop_field_group(half)

    def _entity_group(self, entities: Entities) -> int:
        if entities not in self._entity_groups:
            group = ctypes.c_size_t()
            self._named("dcgmGroupCreate", group, layout.GROUP_EMPTY)
            self._entity_groups[entities] = group.value
            for kind, number in entities:
                self._connection.call("dcgmGroupAddEntity", group, kind, number)
        return self._entity_groups[entities]

    def _field_group(self, fields: tuple[int, ...]) -> int:
        if fields not in self._field_groups:
            group, ids = ctypes.c_size_t(), layout.field_ids(fields)
            self._named("dcgmFieldGroupCreate", group, len(fields), ids)
            self._field_groups[fields] = group.value
        return self._field_groups[fields]

    def _drop_field_group(self, fields: tuple[int, ...]) -> None:
        group = self._field_groups.pop(fields, None)
        if group is not None:
            self._connection.status("dcgmFieldGroupDestroy", group)

    def _named(self, function: str, group: ctypes.c_size_t, *arguments: object) -> None:
        """Creates a group under a name that nobody has."""
        for last in (False,) * (_NAME_TRIES - 1) + (True,):
            name = f"gpugauge-{os.getpid()}-{os.urandom(4).hex()}".encode()
            status = self._connection.status(function, *arguments, name, ctypes.byref(group))
            if status == layout.OK:
                return
            if last or status != layout.DUPLICATE_KEY:
                raise StatusError(function, status)
