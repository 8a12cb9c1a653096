"""Splits the read plan into calls of libdcgm, makes these calls, and turns the records that they return into batches.

The read plan (read_plan.py) states which fields are read of which devices; libdcgm has limits of entities and fields
per call. A record is libdcgm's structure with one value; a batch has the samples of one call by field and device.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter.node.dcgm import layout
from exporter.node.dcgm.connection import EngineConnection
from exporter.node.dcgm.inventory import EngineInventory
from exporter.node.dcgm.records import DecodedRead, RecordBuffer, RecordReader
from exporter.node.dcgm.watch import Entities
from exporter.node.devices.device_source import WantedField, WatchGroup
from exporter.node.devices.read_plan import ReadRequest
from exporter.node.devices.readings import Batch, SampleValue

SAMPLES_PER_CALL = 4096
"""Bounds the buffer to 17 MB: a record has 4,128 bytes whatever its value.

The engine's own limit is 130,688 numbers or 119,552 texts; beyond it a read fails with -31 (4.6.0, measured).
"""


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """Fields to watch and read, of one watch group, and the entities to read them of.

    Basic and profiling fields are read of one entity per device. Event fields are watched on a GPU and all of its
    instances, and exposed on the GPU.
    """

    watch: WatchGroup
    entities: Entities
    entity_devices: tuple[int, ...]
    """Per entity, the device that exposes its values, as position in the inventory; of links, that of the link."""
    fields: tuple[int, ...]

    @property
    def of_links(self) -> bool:
        """Whether the entities are links, so that the positions are those of links and not of devices."""
        return self.entities[0][0] == layout.ENTITY_LINK

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices, each once, although several entities of an event field have the same one."""
        return tuple(dict.fromkeys(self.entity_devices))

    def entities_with_devices(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield each entity with its device."""
        return zip(self.entities, self.entity_devices, strict=True)

    def restricted_to(self, entities: Entities, fields: tuple[int, ...]) -> "WatchTarget":
        """Return the target of these of its entities and these fields."""
        device_of = dict(self.entities_with_devices())
        return WatchTarget(self.watch, entities, tuple(device_of[entity] for entity in entities), fields)

    def split(self, max_entities: int) -> Iterator["WatchTarget"]:
        """Yield the target in pieces of at most `max_entities` entities and as many fields as a field group takes.

        The entities of one device stay together, because the newest of their values is chosen within one read. So a
        piece has more than `max_entities` where one device alone has more.
        """
        for begin in range(0, len(self.fields), layout.FIELDS_PER_CALL):
            fields = self.fields[begin : begin + layout.FIELDS_PER_CALL]
            piece: list[tuple[int, int]] = []
            for device in self.devices:
                own = [entity for entity, its_device in self.entities_with_devices() if its_device == device]
                if piece and len(piece) + len(own) > max_entities:
                    yield self.restricted_to(tuple(piece), fields)
                    piece = []
                piece += own
            yield self.restricted_to(tuple(piece), fields)


def targets_of(
    inventory: EngineInventory, requests: Sequence[ReadRequest], wanted: Mapping[int, WantedField]
) -> list[WatchTarget]:
    """Return what to watch and read for these requests, except fields of the node as a whole and unreadable devices."""
    targets = []
    for request in requests:
        fields = tuple(field for field in request.fields if wanted[field].scope != "system")
        entities: list[tuple[int, int]] = []
        devices: list[int] = []
        for device in request.devices:
            own = _entities(inventory, device, request.watch)
            entities += own
            devices += [device] * len(own)
        if fields and entities:
            targets.append(WatchTarget(request.watch, tuple(entities), tuple(devices), fields))
    return targets


def _entities(inventory: EngineInventory, device: int, watch: WatchGroup) -> Entities:
    entity = inventory.entities[device]
    if entity is None:
        return ()
    # The engine files an event under the smallest entity that the driver named: a compute instance, a GPU instance or
    # the GPU (4.6.0, source). Events are exposed per GPU, so all of its entities are watched.
    return inventory.entities_of_gpu.get(device, (entity,)) if watch == "event" else (entity,)


class BatchRead:
    """One call that every collection makes: its arguments, prepared once, and the decoding of its records."""

    def __init__(
        self, target: WatchTarget, wanted: Mapping[int, WantedField], buffer: RecordBuffer, interval: float
    ) -> None:
        """`interval` is the collection interval in seconds."""
        self._devices, self._entity_devices, self._fields = target.devices, target.entity_devices, target.fields
        self.of_links = target.of_links
        self._pairs = layout.pairs(target.entities)
        self._buffer = buffer
        fields = [wanted[field] for field in target.fields]
        self._reader = RecordReader(buffer, target.entities, fields, interval)
        self._ids = layout.field_array(target.fields)

    def read(self, connection: EngineConnection, wall: Callable[[], float]) -> tuple[Batch, DecodedRead]:
        """Read and decode. `wall` gives Unix seconds, for the age of the values. Raises SourceError."""
        connection.read(self._pairs, self._ids, 0, self._buffer.pointer)
        decoded = self._reader.decode(int(wall() * 1e6))
        columns = tuple(decoded.columns)
        if len(self._entity_devices) != len(self._devices):
            columns = tuple(map(self._newest, decoded.columns, decoded.timestamps))
        return Batch(self._devices, self._fields, columns), decoded

    def _newest(self, values: Sequence[SampleValue], timestamps: Sequence[int]) -> tuple[SampleValue, ...]:
        """Return per device the newest value among its entities."""
        newest: dict[int, tuple[int, SampleValue]] = {}
        for device, value, timestamp in zip(self._entity_devices, values, timestamps, strict=True):
            if value is not None and timestamp >= newest.get(device, (0, None))[0]:
                newest[device] = timestamp, value
        return tuple(newest.get(device, (0, None))[1] for device in self._devices)


def batch_reads(
    targets: Sequence[WatchTarget], wanted: Mapping[int, WantedField], interval: float
) -> Iterator[BatchRead]:
    """Yield the reads of these targets, all through one buffer."""
    pieces = [piece for target in targets for piece in target.split(max(SAMPLES_PER_CALL // len(target.fields), 1))]
    buffer = RecordBuffer(max((len(piece.entities) * len(piece.fields) for piece in pieces), default=0))
    return (BatchRead(piece, wanted, buffer, interval) for piece in pieces)
