"""Makes metric families from readings (the devices and samples that a source returned). No I/O.

The families are the DCGM-named ones, one per row of the counters file, and ours about the devices: identity,
reachability, number, and fields without a value.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from exporter.gpu_names import canonical_model
from exporter.metric import (
    Family,
    Kind,
    LabelPairs,
    Labels,
    LabelSchema,
    Metric,
    Sample,
    Value,
    labels_of_pairs,
    metric,
)
from exporter.node.devices.counters.counters_file import CounterRow, Counters
from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.field import TableScope
from exporter.node.devices.readings import xids
from exporter.node.devices.readings.readings import Batch, Readings, SampleValue
from exporter.node.devices.series.labels import MIG_LABELS, device_name, instance_labels

_INFO_LABELS = (
    "gpu", "UUID", "pci_bus_id", "device", "model", *MIG_LABELS, "serial", "architecture", "driver_version",
    "mig_mode", "numa_node", "node",
)  # fmt: skip

DEVICE_INFO = metric(
    "gpugauge_device_info",
    Kind.GAUGE,
    "Constant 1; one per GPU and MIG device, with what does not change while it exists.",
    *_INFO_LABELS,
    optional=frozenset(_INFO_LABELS) - {"gpu", "UUID", "device"},
)
DEVICE_UP = metric(
    "gpugauge_device_up",
    Kind.GAUGE,
    "1 while the GPU can be read, 0 while it is known but lost, hung or in need of a reset.",
    "gpu",
    "UUID",
    "node",
)
DEVICES_OBSERVED = metric("gpugauge_devices_observed", Kind.GAUGE, "GPUs that could be read.", "node")
DEVICES_EXPECTED = metric(
    "gpugauge_devices_expected", Kind.GAUGE, "GPUs that should be there: the largest number known.", "node"
)
UNSUPPORTED = metric(
    "gpugauge_field_unsupported_devices",
    Kind.GAUGE,
    "GPUs and MIG devices on which a configured field has no value.",
    "field",
    "reason",
    "node",
)
METRICS = (DEVICE_INFO, DEVICE_UP, DEVICES_OBSERVED, DEVICES_EXPECTED, UNSUPPORTED)
KINDS = {"gauge": Kind.GAUGE, "counter": Kind.COUNTER, "untyped": Kind.UNTYPED}

_NUMBERS = frozenset({int, float})

SamplesByField = dict[int, list[tuple[tuple[int, ...], tuple[SampleValue, ...]]]]
"""By field id: (positions of devices in the inventory, their samples), one entry per batch that has the field."""


class EntitySamples(NamedTuple):
    """The samples of one kind of entities, which are devices, links or components, and the labels of each of these."""

    by_field: SamplesByField
    labels: Sequence[Labels]
    schema: LabelSchema


def samples_by_field(batches: Iterable[Batch]) -> SamplesByField:
    """Index the samples of a collection by field id."""
    by_field: SamplesByField = defaultdict(list)
    for batch in batches:
        for field, column in zip(batch.fields, batch.columns, strict=True):
            by_field[field].append((batch.devices, column))
    return by_field


def samples_of_devices(readings: Readings) -> SamplesByField:
    """Index the samples of the devices, without the 0 of a GPU of which nothing else could be read (silent_gpus)."""
    by_field = samples_by_field(readings.batches)
    silent = silent_gpus(readings) if field_ids.XID in by_field else ()
    if silent:
        uuids = [device.uuid for device in readings.inventory]
        by_field[field_ids.XID] = [
            (devices, tuple(v or (None if uuids[p] in silent else v) for p, v in zip(devices, column, strict=True)))
            for devices, column in by_field[field_ids.XID]
        ]
    return by_field


def silent_gpus(readings: Readings) -> set[str]:
    """Return the UUIDs of the GPUs of which numbers were asked for and not one was read.

    That a library knows of no XID on such a GPU says nothing about the GPU, so no 0 is made of it.
    """
    uuids = [device.uuid for device in readings.inventory]
    asked: set[str] = set()
    answering: set[str] = set()
    for batch in readings.batches:
        own = {uuids[position] for position in batch.devices}
        for field, column in zip(batch.fields, batch.columns, strict=True):
            if own <= answering:
                break  # nearly always after the first column
            if field != field_ids.XID and field not in field_ids.SYSTEM:
                asked |= own
                answering |= {uuids[p] for p, v in zip(batch.devices, column, strict=True) if type(v) in _NUMBERS}
    return asked - answering


def label_rows(counters: Counters, readings: Readings, by_field: SamplesByField) -> list[LabelPairs]:
    """Return, per device, name and value of each row of type label; a row without a value is left out.

    A field of the node as a whole, such as the driver version, labels all of its devices.
    """
    rows: list[list[tuple[str, str]]] = [[] for _ in readings.inventory]
    for counter in counters.label_rows:
        for position, value in _label_values(counter, readings, by_field):
            rows[position].append((counter.name, value))
    return [tuple(row) for row in rows]


def _label_values(counter: CounterRow, readings: Readings, by_field: SamplesByField) -> Iterator[tuple[int, str]]:
    """Positions of devices and their values of one label row: a MIG device without its own value has its GPU's."""
    own: dict[int, str] = {}
    for devices, column in by_field.get(counter.field.id, ()):
        own.update((p, str(value)) for p, value in zip(devices, column, strict=True) if value is not None)
    of_gpu = {readings.inventory[p].uuid: value for p, value in own.items() if readings.inventory[p].gi < 0}
    for position, device in enumerate(readings.inventory):
        value = own.get(position) or of_gpu.get(device.uuid)
        if value:
            yield position, value


def dcgm_families(
    counters: Counters, devices: EntitySamples, others: Mapping[TableScope, EntitySamples]
) -> list[Family]:
    """Make one family per row of the counters file, in the order of the file.

    `others` has the samples of entities that are no devices, by the scope of their fields.
    """
    families = []
    known: dict[tuple[str, tuple[int, ...]], list[Labels]] = {}
    for counter in counters.sample_rows:
        entities = others.get(counter.field.scope, devices)
        kind = counter.field.scope if counter.field.scope in others else "device"
        samples: list[Sample] = []
        for positions, column in entities.by_field.get(counter.field.id, ()):
            labels = known.get((kind, positions))
            if labels is None:
                labels = known[kind, positions] = [entities.labels[position] for position in positions]
            samples += _labeled(labels, column)
        schema = entities.schema
        if counter.field.id == field_ids.XID:
            schema = xid_schema(schema)
            samples = [(_xid_labels(label, value, schema), value) for label, value in samples]
        families.append(Family(dcgm_metric(counter.name, counter.type, counter.help, schema), samples))
    return families


@lru_cache(maxsize=16)
def xid_schema(schema: LabelSchema) -> LabelSchema:
    """The label names of a series with the last XID: as dcgm-exporter, with the code and what it means."""
    return LabelSchema((*schema.names, "err_code", "err_msg"), schema.optional)


@lru_cache(maxsize=1024)
def _xid_labels(labels: Labels, code: Value, schema: LabelSchema) -> Labels:
    return labels_of_pairs(schema, (*labels.pairs, ("err_code", f"{code:.0f}"), ("err_msg", xids.text(code))))


def _labeled(labels: Sequence[Labels], column: Sequence[SampleValue]) -> Iterable[Sample]:
    """Pair each sample that is a number with the labels of its device."""
    pairs = zip(labels, column, strict=True)
    if _NUMBERS.issuperset(map(type, column)):  # nearly every column; saves a test per sample
        return cast("Iterable[Sample]", pairs)
    return [(label, value) for label, value in pairs if value is not None and not isinstance(value, str)]


@lru_cache(maxsize=1024)
def dcgm_metric(name: str, kind: str, help_: str, schema: LabelSchema) -> Metric:
    """Define the metric of one row of the counters file; cached, because every collection has the same rows."""
    return Metric(name, KINDS[kind], help_, schema)


def _info(device: Device, node: str) -> Labels:
    return DEVICE_INFO.labels(
        gpu=str(device.index),
        UUID=device.uuid,
        pci_bus_id=device.pci_bus_id,
        device=device_name(device),
        model=canonical_model(device.model),
        **instance_labels(device),
        serial=device.serial,
        architecture=device.architecture,
        driver_version=device.driver_version,
        mig_mode={True: "enabled", False: "disabled", None: ""}[device.mig_enabled],
        numa_node=str(device.numa_node) if device.numa_node >= 0 else "",
        node=node,
    )


class InventoryMetrics:
    """The families that change only with the inventory; those of the last inventory are kept."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._inventory: tuple[Device, ...] | None = None
        self._info: list[Sample] = []
        self._gpus: list[tuple[Device, Labels]] = []

    def families(self, readings: Readings, expected: int) -> list[Family]:
        """Make the families about identity, reachability and number of the devices.

        `expected` is how many GPUs there should be.
        """
        if readings.inventory != self._inventory:
            self._update(readings.inventory)
        down = frozenset(readings.down)
        up: list[Sample] = [(labels, 0 if gpu.uuid in down else 1) for gpu, labels in self._gpus]
        observed = sum(value for _, value in up)
        return [
            Family(DEVICE_INFO, self._info),
            Family(DEVICE_UP, up),
            Family(DEVICES_OBSERVED, [DEVICES_OBSERVED.sample(observed, node=self._node)]),
            Family(DEVICES_EXPECTED, [DEVICES_EXPECTED.sample(expected, node=self._node)]),
        ]

    def _update(self, inventory: tuple[Device, ...]) -> None:
        self._inventory = inventory
        self._info = [(_info(device, self._node), 1) for device in inventory]
        gpus = [device for device in inventory if device.gi < 0]
        self._gpus = [(gpu, DEVICE_UP.labels(gpu=str(gpu.index), UUID=gpu.uuid, node=self._node)) for gpu in gpus]


def field_names(counters: Counters) -> dict[int, str]:
    """By field id, the name under which the field is exposed: the value of our label `field`."""
    return {row.field.id: row.name for row in reversed(counters.rows)}


def unsupported(readings: Readings, names: dict[int, str], node: str) -> Family:
    """Count the devices that have no value of a configured field, by reason, from this collection's rejections."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for rejection in readings.rejections:
        if rejection.field in names:
            counts[names[rejection.field], rejection.reason] += rejection.count
    return Family(
        UNSUPPORTED,
        [
            UNSUPPORTED.sample(count, field=field, reason=reason, node=node)
            for (field, reason), count in sorted(counts.items())
        ],
    )
