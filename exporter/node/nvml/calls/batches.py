"""Turns the values of one collection, by device, link or vGPU and field, into batches, and counts what is rejected.

A batch is the samples of one read request: some fields of some devices. No I/O, no state.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from exporter.node.devices.fields.device_source import WantedField
from exporter.node.devices.fields.read_plan import ReadRequest
from exporter.node.devices.fields.validity import checked
from exporter.node.devices.readings.readings import Batch, Rejection, RejectionCounts, SampleValue
from exporter.node.nvml.native.values import NvmlValue, RejectedValue

NvmlValues = dict[int, dict[int, NvmlValue | None]]
"""Values by position in the inventory, then by field id. None is nothing to expose and nothing to count: no XID yet."""


def assemble(
    requests: Iterable[ReadRequest], values: NvmlValues, wanted: Mapping[int, WantedField]
) -> tuple[tuple[Batch, ...], tuple[Rejection, ...]]:
    """Return the batches and what was rejected. A device without an entry in `values` is in no batch."""
    counts: RejectionCounts = Counter()
    batches = []
    for request in requests:
        devices = tuple(index for index in request.devices if index in values)
        columns = tuple(_column(wanted[field], devices, values, counts) for field in request.fields)
        batches += [Batch(devices, request.fields, columns)] if devices else []
    return tuple(batches), _rejections(counts)


def assemble_parts(
    values: Sequence[Mapping[int, NvmlValue]], wanted: Mapping[int, WantedField]
) -> tuple[tuple[Batch, ...], tuple[Rejection, ...]]:
    """Return the batch of links or of vGPUs, each with the same fields, and what was rejected."""
    if not values:
        return (), ()
    counts: RejectionCounts = Counter()
    fields = tuple(values[0])
    columns = tuple(tuple(_sample(wanted[field], own[field], counts) for own in values) for field in fields)
    return (Batch(tuple(range(len(values))), fields, columns),), _rejections(counts)


def _rejections(counts: RejectionCounts) -> tuple[Rejection, ...]:
    return tuple(Rejection(field, reason, n) for (field, reason), n in sorted(counts.items()))


def _column(
    wanted: WantedField, devices: tuple[int, ...], values: NvmlValues, counts: RejectionCounts
) -> tuple[SampleValue, ...]:
    return tuple(_sample(wanted, values[index].get(wanted.id), counts) for index in devices)


def _sample(wanted: WantedField, value: NvmlValue | None, counts: RejectionCounts) -> SampleValue:
    if value is None:
        return None
    sample, reason = (None, value.reason) if isinstance(value, RejectedValue) else checked(value, wanted)
    if reason is not None:
        counts[wanted.id, reason] += 1
    return sample
