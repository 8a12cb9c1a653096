"""Splits targets into calls of libdcgm, makes these calls, and turns the records that they return into batches.

A record is libdcgm's structure with one value; a batch has the samples of one call by field and device.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.records import DecodedRead, RecordBuffer, RecordReader
from exporter.node.dcgm.targets.targets import WatchTarget
from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.framebuffer import framebuffer_positions, without_absent_framebuffer
from exporter.node.devices.readings import xids
from exporter.node.devices.readings.readings import Batch, RejectionReason, SampleValue

SAMPLES_PER_CALL = 4096
"""Bounds the buffer to 17 MB: a record has 4,128 bytes whatever its value.

The engine's own limit is 130,688 numbers or 119,552 texts; beyond it a read fails with -31 (4.6.0, measured).
"""


class BatchRead:
    """One call that every collection makes: its arguments, prepared once, and the decoding of its records."""

    def __init__(
        self, target: WatchTarget, wanted: Mapping[int, WantedField], buffer: RecordBuffer, interval: float
    ) -> None:
        """`interval` is the collection interval in seconds."""
        self.target = target
        self._devices, self._entity_devices, self._fields = target.devices, target.entity_devices, target.fields
        self._pairs = layout.pairs(target.entities)
        self._wanted, self._buffer, self._interval = wanted, buffer, interval
        fields = [wanted[field] for field in target.fields]
        self._reader = RecordReader(buffer, target.entities, fields, interval)
        self._ids = layout.field_array(target.fields)
        self._framebuffer = framebuffer_positions(target.fields)

    def read(self, connection: EngineConnection, wall: Callable[[], float]) -> tuple[Batch, DecodedRead]:
        """Read and decode. `wall` gives Unix seconds, for the age of the values. Raises SourceError."""
        connection.read(self._pairs, self._ids, 0, self._buffer.pointer)
        decoded = self._reader.decode(int(wall() * 1e6))
        columns = tuple(self._without_absent_framebuffer(decoded))
        if len(self._entity_devices) != len(self._devices):
            columns = tuple(map(self._newest, decoded.columns, decoded.timestamps))
        return Batch(self._devices, self._fields, columns), decoded

    def _without_absent_framebuffer(self, decoded: DecodedRead) -> Sequence[tuple[SampleValue, ...]]:
        """Return the columns without the zeros of entities that have no framebuffer, and count those."""
        if not self._framebuffer:
            return decoded.columns
        columns, removed = without_absent_framebuffer(decoded.columns, self._framebuffer)
        decoded.rejected.update({(field, RejectionReason.NOT_SUPPORTED): n for field, n in removed.items() if n})
        return columns

    def part(self, target: WatchTarget) -> "BatchRead":
        """Return the read of a part of the target, through the same buffer."""
        return BatchRead(target, self._wanted, self._buffer, self._interval)

    def _newest(self, values: Sequence[SampleValue], timestamps: Sequence[int]) -> tuple[SampleValue, ...]:
        """Return per device the newest event among its entities; 0 only where each of them has had none."""
        newest: dict[int, tuple[int, SampleValue]] = {}
        without_event: set[int] = set(self._devices)
        for device, value, timestamp in zip(self._entity_devices, values, timestamps, strict=True):
            if value != xids.NO_XID:
                without_event.discard(device)
                if value is not None and timestamp >= newest.get(device, (0, None))[0]:
                    newest[device] = timestamp, value
        return tuple(
            xids.NO_XID if device in without_event else newest.get(device, (0, None))[1] for device in self._devices
        )


def batch_reads(
    targets: Sequence[WatchTarget], wanted: Mapping[int, WantedField], interval: float
) -> Iterator[BatchRead]:
    """Yield the reads of these targets, all through one buffer."""
    pieces = [piece for target in targets for piece in target.split(max(SAMPLES_PER_CALL // len(target.fields), 1))]
    buffer = RecordBuffer(max((len(piece.entities) * len(piece.fields) for piece in pieces), default=0))
    return (BatchRead(piece, wanted, buffer, interval) for piece in pieces)
