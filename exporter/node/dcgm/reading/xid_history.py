"""Fetches every XID that the engine has stored since the last read: a repeated code is seen, and several at once.

The newest value of the event field, which every collection reads, has only the last XID; but its time shows whether
there is a new one, and only then the engine is asked for all of them.
"""

from collections.abc import Iterator

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection, StoredValue
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.live_reader import Entity
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.dcgm.native.records import DecodedRead
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE
from exporter.node.dcgm.reading.watch import Watches
from exporter.node.dcgm.targets.targets import Entities, WatchTarget
from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import XidReport

_OF_THE_ENGINE = OF_THE_ENGINE - {layout.VERSION_MISMATCH, layout.FUNCTION_NOT_FOUND}
_COMPLETE = frozenset({layout.OK, layout.NO_DATA})
"""Of a request that answered; without data is what one entity of several can be (4.6.0, source)."""


class XidHistory:
    """Knows up to which time the XIDs of each entity of one connection have been reported."""

    def __init__(self, connection: EngineConnection, watches: Watches) -> None:
        self._connection, self._watches = connection, watches
        self._until: dict[Entity, int] = {}
        """In microseconds since the epoch, by the engine's clock."""
        self.problems: dict[Entities, tuple[str, str]] = {}
        """(reason, message) by the entities whose stored XIDs could not be fetched when there last was one."""

    def new_reports(self, target: WatchTarget, read: DecodedRead, made: WatchTarget) -> list[XidReport]:
        """Return the XIDs since the last read of this target; the first time all that the engine has stored.

        `made` is the watch that samples the target; it may have more entities. Raises StatusError only where the
        failure is the engine's.
        """
        if target.watch != "event" or field_ids.XID not in target.fields:
            return []
        column = target.fields.index(field_ids.XID)
        newest = dict(zip(target.entities, read.timestamps[column], strict=True))
        until = {entity: self._until.get(entity, 0) for entity in newest}
        changed = [until[entity] for entity in newest if newest[entity] > until[entity]]
        if not changed:
            return []
        found = self._fetch(made, min(changed) + 1, list(_newest_values(target, read, column)))
        self._until |= {entity: max(newest[entity], until[entity]) for entity in newest}
        gpu_of = dict(zip(target.entities, target.entity_gpus, strict=True))
        return [
            XidReport(gpu_of[value.entity], value.value, value.timestamp / 1e6)
            for value in found
            # What came after the newest value was read is reported with the next one.
            if _is_xid(value)
            and value.entity in newest
            and until[value.entity] < value.timestamp <= newest[value.entity]
        ]

    def _fetch(self, made: WatchTarget, since: int, newest: list[StoredValue]) -> list[StoredValue]:
        """Return the values stored since that time; the newest alone where the engine does not answer the request."""
        groups = self._watches.groups(made.entities, made.fields)
        status, found = (layout.OK, []) if groups is None else self._connection.stored_values(groups, since)
        if status in _OF_THE_ENGINE:
            raise StatusError("dcgmGetValuesSince_v2", status)
        self.problems.pop(made.entities, None)
        if status in _COMPLETE and found:
            return found
        if newest:
            message = f"of several XIDs between two reads only the last is counted: status {status}"
            self.problems[made.entities] = (DcgmReason.XIDS_INCOMPLETE, message)
        return newest


def _newest_values(target: WatchTarget, read: DecodedRead, column: int) -> Iterator[StoredValue]:
    for entity, timestamp, value in zip(target.entities, read.timestamps[column], read.columns[column], strict=True):
        if isinstance(value, int) and timestamp > 0:
            yield StoredValue(entity, field_ids.XID, layout.TYPE_INT64, layout.OK, timestamp, value)


def _is_xid(value: StoredValue) -> bool:
    number = value.type == layout.TYPE_INT64 and 0 < value.value < layout.INT64_BLANK
    return value.field == field_ids.XID and value.status == layout.OK and number
