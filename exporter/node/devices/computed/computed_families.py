"""Makes the metric families that are computed and not read: XIDs, clock events and P2P statuses. No I/O.

In: the readings of each collection. Out: our own families, and those that dcgm-exporter computes as far as the counters
file names them. What is counted is kept for the life of the exporter, as long as the GPU is known: reader processes
and reloads of the counters file come and go meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from exporter.metric import Family, Kind, Labels, LabelSchema, Metric, Sample, labels_of_pairs, metric
from exporter.node.devices.computed import clock_events
from exporter.node.devices.computed.clock_events import ClockEvents
from exporter.node.devices.computed.xid_counts import XidCounts
from exporter.node.devices.counters.computed_metrics import ComputedMetric
from exporter.node.devices.counters.counters_file import ComputedRow
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings import p2p, xids
from exporter.node.devices.readings.health import HealthStatus
from exporter.node.devices.readings.readings import P2pStatus, Readings
from exporter.node.devices.series.metrics import SamplesByField

CLOCK_EVENT = metric(
    "gpugauge_clock_event",
    Kind.GAUGE,
    "1 while power, heat or hardware (reason) holds the clocks of the GPU down, 0 while it does not.",
    "gpu",
    "UUID",
    "reason",
    "node",
)
XID_ERRORS = metric(
    "gpugauge_xid_errors_total",
    Kind.COUNTER,
    "XIDs of the GPU and its MIG devices since the exporter started. Critical codes begin at 0, others with the first.",
    "gpu",
    "UUID",
    "xid",
    "node",
)
LAST_XID = metric(
    "gpugauge_xid_last_timestamp_seconds",
    Kind.GAUGE,
    "Unix time of the last XID of this code, also of one from before the start that the engine has stored.",
    "gpu",
    "UUID",
    "xid",
    "node",
)
METRICS = (XID_ERRORS, LAST_XID, CLOCK_EVENT)


@dataclass(frozen=True, slots=True)
class CountWindows:
    """How far back the metrics that count within a window look, in milliseconds."""

    xids: int = 300_000
    clock_events: int = 300_000


ExtraLabels = tuple[tuple[str, str], ...]
CountedSamples = Iterator[tuple[Device, ExtraLabels, int]]
"""A GPU, the labels that a computed metric adds to those of the GPU, and the value."""


@lru_cache(maxsize=64)
def computed_metric(name: str, help_: str, kind: Kind, schema: LabelSchema) -> Metric:
    """Define the metric of one row of the counters file; cached, because every collection has the same rows."""
    return Metric(name, kind, help_, schema)


@lru_cache(maxsize=64)
def extended_schema(schema: LabelSchema, computed: ComputedMetric) -> LabelSchema:
    """The label names of a GPU's series and those that a computed metric adds."""
    return LabelSchema((*schema.names, *computed.labels), schema.optional | computed.optional)


class ComputedFamilies:
    """Counts over all collections, and makes families of them. For one thread."""

    def __init__(self, node: str, windows: CountWindows, started_at: float) -> None:
        """`started_at` is when counting starts, in Unix seconds."""
        self._node, self._windows, self._started_at = node, windows, started_at
        self._xids: dict[str, XidCounts] = {}
        """Of the GPUs whose XIDs can be received: an XID came, or the source knows that none did."""
        self._readable: frozenset[str] = frozenset()
        self._clocks: dict[str, ClockEvents] = {}
        self._masks: dict[str, int] = {}
        """By UUID, of the GPUs whose clock events were read in this collection."""
        self._gpus: tuple[Device, ...] = ()
        self._p2p: tuple[P2pStatus, ...] = ()
        self._now = 0.0
        self._health: Mapping[str, Sequence[HealthStatus]] = {}
        self._own_labels: dict[tuple[str, ...], Labels] = {}
        self._samples_of: Mapping[str, Callable[[], CountedSamples]] = {
            "DCGM_EXP_XID_ERRORS_COUNT": self._xids_in_window,
            "DCGM_EXP_XID_ERRORS_TOTAL": self._xids_since_start,
            "DCGM_EXP_P2P_STATUS": self._p2p_statuses,
            "DCGM_EXP_CLOCK_EVENTS_COUNT": self._clock_events_in_window,
            "DCGM_EXP_CLOCK_EVENTS_TOTAL": self._clock_events_begun,
            "DCGM_EXP_GPU_HEALTH_STATUS": self._health_statuses,
        }

    def observe(self, readings: Readings, by_field: SamplesByField) -> None:
        """Count what these readings have. Without devices, as while the source fails, nothing is forgotten."""
        gpus = tuple(device for device in readings.inventory if device.gi < 0)
        if gpus != self._gpus:
            self._own_labels.clear()
        self._gpus, self._now, self._p2p = gpus, readings.taken_at, readings.p2p
        self._readable = frozenset(gpu.uuid for gpu in gpus).difference(readings.down)
        if gpus:  # a GPU that is not listed any more was replaced: KnownGpus adds those that are only missing
            known = {gpu.uuid for gpu in gpus}
            self._xids = {uuid: xids for uuid, xids in self._xids.items() if uuid in known}
            self._clocks = {uuid: clocks for uuid, clocks in self._clocks.items() if uuid in known}
        self._observe_xids(readings, by_field)
        self._health = _health_by_gpu(readings)
        self._masks = dict(_numbers(readings, by_field, field_ids.CLOCKS_EVENT_REASONS))
        for uuid, mask in self._masks.items():
            self._clocks.setdefault(uuid, ClockEvents(self._windows.clock_events / 1000)).add(mask, self._now)

    def _observe_xids(self, readings: Readings, by_field: SamplesByField) -> None:
        for uuid, _ in _numbers(readings, by_field, field_ids.XID):
            self._xids_of(uuid)
        known = {gpu.uuid for gpu in self._gpus}
        for report in sorted(readings.xids, key=lambda report: report.at):
            if report.uuid in known:
                self._xids_of(report.uuid).add(report, self._started_at)

    def _xids_of(self, uuid: str) -> XidCounts:
        return self._xids.setdefault(uuid, XidCounts(self._windows.xids / 1000))

    def own(self) -> list[Family]:
        """Our own families, which no counters file lists."""
        return [
            Family(XID_ERRORS, list(self._xid_samples())),
            Family(LAST_XID, list(self._last_xid_samples())),
            Family(CLOCK_EVENT, list(self._clock_event_samples())),
        ]

    def of_file(
        self, rows: Sequence[ComputedRow], inventory: Sequence[Device], labels: Sequence[Labels], schema: LabelSchema
    ) -> list[Family]:
        """The families of these rows, of the GPUs in `inventory`; `labels` has those of its devices, for `schema`."""
        by_uuid = {device.uuid: own for device, own in zip(inventory, labels, strict=True) if device.gi < 0}
        families = []
        for row in rows:
            extended = extended_schema(schema, row.metric)
            samples: list[Sample] = [
                (labels_of_pairs(extended, (*by_uuid[gpu.uuid].pairs, *extra)), value)
                for gpu, extra, value in self._samples_of[row.name]()
                if gpu.uuid in by_uuid
            ]
            families.append(Family(computed_metric(row.name, row.help, row.metric.kind, extended), samples))
        return families

    def _xid_samples(self) -> Iterator[Sample]:
        for gpu, counts in self._counted_gpus():
            for code in sorted({*xids.CRITICAL, *counts.last}):
                yield self._labels(XID_ERRORS, gpu, "xid", str(code)), counts.since_start[code]

    def _last_xid_samples(self) -> Iterator[Sample]:
        for gpu, counts in self._counted_gpus():
            for code, at in sorted(counts.last.items()):
                yield self._labels(LAST_XID, gpu, "xid", str(code)), at

    def _counted_gpus(self) -> Iterator[tuple[Device, XidCounts]]:
        """Yield the known GPUs whose XIDs can be received, those that are lost now included: an XID may say why."""
        for gpu in self._gpus:
            counts = self._xids.get(gpu.uuid)
            if counts is not None:
                yield gpu, counts

    def _xids_in_window(self) -> CountedSamples:
        window = self._windows.xids
        size = ("window_size_in_ms", str(window))
        for gpu, counts in self._counted_gpus():
            found = counts.within_window(self._now)
            for code, count in sorted(found.items()):
                yield gpu, (size, ("xid", str(code))), count
            if not found and gpu.uuid in self._readable:
                yield gpu, (size,), 0

    def _xids_since_start(self) -> CountedSamples:
        for gpu, counts in self._counted_gpus():
            for code, count in sorted(counts.since_start.items()):
                yield gpu, (("xid", str(code)),), count

    def _clock_event_samples(self) -> Iterator[Sample]:
        for gpu in self._gpus:
            mask = self._masks.get(gpu.uuid)
            if mask is not None:
                for reason in clock_events.THROTTLES:
                    active = bool(mask & clock_events.REASONS[reason])
                    yield self._labels(CLOCK_EVENT, gpu, "reason", reason), int(active)

    def _labels(self, metric: Metric, gpu: Device, name: str, value: str) -> Labels:
        """The labels of one of our own series, made once."""
        key = (metric.name, gpu.uuid, value)
        if key not in self._own_labels:
            pairs = {"gpu": str(gpu.index), "UUID": gpu.uuid, name: value, "node": self._node}
            self._own_labels[key] = metric.labels(**pairs)
        return self._own_labels[key]

    def _clock_events_in_window(self) -> CountedSamples:
        window = self._windows.clock_events
        for gpu in self._gpus:
            if gpu.uuid in self._masks:
                counts = self._clocks[gpu.uuid].samples_with(self._now)
                for reason, count in counts.items():
                    yield gpu, (("window_size_in_ms", str(window)), ("clock_event", reason)), count

    def _clock_events_begun(self) -> CountedSamples:
        for gpu in self._gpus:
            if gpu.uuid in self._masks:
                for reason, count in self._clocks[gpu.uuid].begun.items():
                    yield gpu, (("clock_event", reason),), count

    def _p2p_statuses(self) -> CountedSamples:
        gpus = {gpu.uuid: gpu for gpu in self._gpus if gpu.uuid in self._readable}
        for pair in self._p2p:
            gpu, peer = gpus.get(pair.uuid), gpus.get(pair.peer)
            if gpu is not None and peer is not None and p2p.is_known(pair.status):
                extra = (("peer_gpu", str(peer.index)), ("link_status", p2p.STATUSES[pair.status]))
                yield gpu, extra, pair.status

    def _health_statuses(self) -> CountedSamples:
        for gpu in self._gpus:
            for status in self._health.get(gpu.uuid, ()):
                yield gpu, (("health_watch", status.watch), ("health_error_code", status.error)), status.result


def _health_by_gpu(readings: Readings) -> Mapping[str, Sequence[HealthStatus]]:
    found: dict[str, list[HealthStatus]] = {}
    for status in readings.health or ():
        if status.uuid not in readings.down:
            found.setdefault(status.uuid, []).append(status)
    return found


def _numbers(readings: Readings, by_field: SamplesByField, field: int) -> Iterator[tuple[str, int]]:
    """Yield the UUID and the value of each GPU that has one of this field."""
    for devices, column in by_field.get(field, ()):
        for position, value in zip(devices, column, strict=True):
            if isinstance(value, int):
                yield readings.inventory[position].uuid, value
