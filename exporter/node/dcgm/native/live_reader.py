"""Reads fields without a watch: the engine asks the driver at once (LIVE_DATA), instead of returning a stored sample.

For discovery and for fields of the node as a whole, such as the driver version.
"""

from collections.abc import Callable, Mapping, Sequence

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import StatusError
from exporter.node.dcgm.native.records import RecordBuffer, RecordReader
from exporter.node.dcgm.native.status_scope import OF_THE_ENGINE
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.readings.readings import SampleValue

Entity = tuple[int, int]
"""Kind and id. Ids are valid until the engine restarts; those of MIG devices only until the next change of MIG."""
ValuesByEntity = Mapping[tuple[int, int, int], SampleValue]
"""By (kind, id, field)."""

_INTERVAL = 1e9
"""Seconds. Live values are never stale, even where the clock of the engine's node is off."""


class LiveReader:
    """Reads fields of entities from the driver, with the flag LIVE_DATA. `wall` gives Unix seconds.

    A call lasts as long as the driver takes, so it is not made at every collection. Never pass a profiling field: a
    live read of one crashes the engine (4.6.0, measured). The same fields through a watch are safe.
    """

    def __init__(self, connection: EngineConnection, wall: Callable[[], float]) -> None:
        self._connection = connection
        self._wall = wall

    def __call__(
        self, entities: Sequence[Entity], fields: Sequence[WantedField]
    ) -> dict[tuple[int, int, int], SampleValue]:
        """Return the value of each field of each entity, None where there is none. Raises SourceError."""
        values: dict[tuple[int, int, int], SampleValue] = {}
        step = layout.ENTITIES_PER_CALL[self._connection.library.major]
        for begin in range(0, len(entities), step):
            values |= self._read(entities[begin : begin + step], fields)
        return values

    def each(
        self, entities: Sequence[Entity], fields: Sequence[WantedField]
    ) -> tuple[dict[tuple[int, int, int], SampleValue], dict[Entity, StatusError]]:
        """Return the values as a call does, and the entities of which none can be read, with the engine's answer.

        Raises StatusError when the failure is the engine's.
        """
        if not entities:
            return {}, {}
        try:
            return self(entities, fields), {}
        except StatusError as error:
            if error.status in OF_THE_ENGINE:
                raise
            if len(entities) == 1:
                return {}, {entities[0]: error}
        middle = len(entities) // 2
        (first, not_first), (second, not_second) = (
            self.each(half, fields) for half in (entities[:middle], entities[middle:])
        )
        return first | second, not_first | not_second

    def _read(
        self, entities: Sequence[Entity], fields: Sequence[WantedField]
    ) -> dict[tuple[int, int, int], SampleValue]:
        buffer = RecordBuffer(len(entities) * len(fields))
        reader = RecordReader(buffer, entities, fields, _INTERVAL)
        ids = layout.field_array([field.id for field in fields])
        self._connection.read(layout.pairs(entities), ids, layout.LIVE_DATA, buffer.pointer)
        columns = reader.decode(int(self._wall() * 1e6)).columns
        return {
            (*entity, field.id): value
            for field, column in zip(fields, columns, strict=True)
            for entity, value in zip(entities, column, strict=True)
        }
