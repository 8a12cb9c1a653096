"""Makes the watches of one connection: the engine then samples these fields of these entities on a timer, for us.

A watch refers to an entity group and a field group, which are made and destroyed here too. Fields that an engine does
not know are found by trial.
"""

import ctypes
import os
from collections.abc import Sequence

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE
from exporter.node.dcgm.targets.targets import Entities, WatchTarget
from exporter.node.devices.fields.device_source import WatchGroup
from exporter.node.devices.fields.validity import EVENT_SECONDS, MAX_AGE_INTERVALS

_UNKNOWN = frozenset({layout.BAD_PARAMETER, layout.UNKNOWN_FIELD, layout.NOT_SUPPORTED, layout.FIELD_UNSUPPORTED})
"""Answers to a field group of one field that the engine does not know."""
_NAME_ATTEMPTS = 3
_MIN_PROFILING_INTERVAL = 1.0
"""Seconds. Before Hopper, fields that do not fit into one group of hardware counters take turns within an interval: a
shorter one costs more and gives no better values."""
_MIN_KEEP_SECONDS = 60.0


def watch_interval(watch: WatchGroup, interval: float) -> float:
    """Return how often the engine samples a watch group, in seconds; `interval` is how often that is asked for."""
    return max(interval, _MIN_PROFILING_INTERVAL) if watch == "profiling" else interval


class Watches:
    """All groups and watches of one connection. Groups of the same entities, and of the same fields, are made once.

    An engine has 64 entity groups and 64 field groups for all of its clients together (header), of which 61 of each
    can be made (4.6.0, measured).
    """

    def __init__(self, connection: EngineConnection, interval: float) -> None:
        """`interval` is in seconds: how often the engine samples what is watched and has no interval of its own."""
        self._connection, self._interval = connection, interval
        self._entity_groups: dict[Entities, int] = {}
        self._field_groups: dict[tuple[int, ...], int] = {}
        self._watched: list[tuple[int, int]] = []
        self.unknown: dict[int, StatusError] = {}
        """The fields that this engine does not know, found by trial, and its answer."""

    def known(self, fields: Sequence[int]) -> tuple[tuple[int, ...], dict[int, StatusError]]:
        """Return the fields of which a group can be made, and those of which none can now, with the engine's answer.

        Fields that this engine does not know are in neither. Raises StatusError when the failure is the engine's.
        """
        wanted = tuple(field for field in fields if field not in self.unknown)
        error = self._field_group_error(wanted) if wanted else None
        if error is None:
            return wanted, {}
        if error.status in OF_THE_ENGINE:
            raise error
        if len(wanted) == 1:
            if error.status in _UNKNOWN:
                self.unknown[wanted[0]] = error
                return (), {}
            return (), {wanted[0]: error}
        # The status does not name the field, and no call of libdcgm lists the fields of an engine: field metadata
        # (DcgmFieldGetById) are the library's own, which can be of another version (source). So trials find out.
        middle = len(wanted) // 2
        (first, not_now), (second, neither) = (self.known(half) for half in (wanted[:middle], wanted[middle:]))
        for half in (first, second):
            self._destroy_unused(entities=(), fields=half)
        return first + second, not_now | neither

    def admit(self, entities: Entities) -> dict[tuple[int, int], StatusError]:
        """Make the group of these entities. Returns those that no group takes, and the engine's answer.

        Raises StatusError when the failure is the engine's.
        """
        if entities in self._entity_groups:
            return {}
        group = self._entity_groups[entities] = self._new_entity_group()
        rejected: dict[tuple[int, int], StatusError] = {}
        for kind, number in entities:
            # A GPU in state 2 (unsupported) is rejected with -22, one in state 4 (lost) with -18 (4.6.0, measured).
            status = self._connection.status("dcgmGroupAddEntity", group, kind, number)
            if status in OF_THE_ENGINE:
                raise StatusError("dcgmGroupAddEntity", status)
            if status != layout.OK:
                rejected[kind, number] = StatusError("dcgmGroupAddEntity", status)
        if rejected:
            self._destroy_entity_group(entities)
        return rejected

    def watch(self, target: WatchTarget) -> None:
        """Watch exactly these fields. When one cannot be watched, none is (4.6.0, source). Raises StatusError.

        That is why basic, profiling and event fields are watched by calls of their own.
        """
        for error in self.admit(target.entities).values():
            raise error
        groups = self._entity_groups[target.entities], self._field_group(target.fields)
        interval = watch_interval(target.watch, target.interval or self._interval)
        keep = EVENT_SECONDS if target.watch == "event" else max(MAX_AGE_INTERVALS * interval, _MIN_KEEP_SECONDS)
        # The interval is in microseconds, the time to keep samples in seconds. The engine keeps them for the longest of
        # that time, the number of samples times the interval, and 1 s (4.6.0, source): 0 samples adds nothing. It reads
        # watched fields once before this call returns, except profiling fields: those are blank until one interval
        # later (4.6.0, measured).
        self._connection.call("dcgmWatchFields", *groups, round(interval * 1e6), keep, 0)
        self._watched.append(groups)

    def discard(self, target: WatchTarget) -> None:
        """Undo an attempt to watch a target: end its watch, if there is one, and destroy the groups of nothing else."""
        groups = self._entity_groups.get(target.entities, 0), self._field_groups.get(target.fields, 0)
        if groups in self._watched:
            self._watched.remove(groups)
            self._connection.status("dcgmUnwatchFields", *groups)
        self._destroy_unused(target.entities, target.fields)

    def groups(self, entities: Entities, fields: tuple[int, ...]) -> tuple[int, int] | None:
        """Return entity group and field group of a watch of exactly these entities and fields, None without one."""
        if entities in self._entity_groups and fields in self._field_groups:
            return self._entity_groups[entities], self._field_groups[fields]
        return None

    def close(self) -> None:
        """Remove every watch and group. Never raises: an engine that is gone has forgotten them anyway.

        A field that is read after its unwatch has its last value with an old timestamp and status OK (4.6.0,
        measured), so only its age shows that it is not updated any more.
        """
        # Watches first: they refer to the groups.
        for entity_group, field_group in self._watched:
            self._connection.status("dcgmUnwatchFields", entity_group, field_group)
        self._watched = []
        for fields in tuple(self._field_groups):
            self._destroy_field_group(fields)
        for entities in tuple(self._entity_groups):
            self._destroy_entity_group(entities)

    def _destroy_unused(self, entities: Entities, fields: tuple[int, ...]) -> None:
        """Destroy the groups of these entities and fields, unless something is watched with them."""
        if self._field_groups.get(fields) not in {field_group for _, field_group in self._watched}:
            self._destroy_field_group(fields)
        if self._entity_groups.get(entities) not in {entity_group for entity_group, _ in self._watched}:
            self._destroy_entity_group(entities)

    def _new_entity_group(self) -> int:
        group = ctypes.c_size_t()
        self._create("dcgmGroupCreate", group, layout.GROUP_EMPTY)
        return group.value

    def _field_group_error(self, fields: tuple[int, ...]) -> StatusError | None:
        try:
            self._field_group(fields)
        except StatusError as error:
            return error
        return None

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

    def _destroy_entity_group(self, entities: Entities) -> None:
        group = self._entity_groups.pop(entities, None)
        if group is not None:
            self._connection.status("dcgmGroupDestroy", group)

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
