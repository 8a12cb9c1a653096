"""Normalized values: one number in base units per device and quantity, whatever the source calls it. No I/O, no state.

In: the samples of a collection. Out: `DeviceValues`, which `exporter/node/attribution/series/normalized_metrics.py`
makes series of. A quantity that was not read, or of which a part is missing, is None: no zero is made up.
"""

from collections.abc import Sequence
from typing import NamedTuple

from exporter.node.devices.computed.device_state import DeviceColumn, busy_ratios, values_by_device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.read_plan import Level
from exporter.node.devices.series.metrics import SamplesByField

MIB = 1_048_576
_MILLIJOULES = 1000.0


class DeviceValues(NamedTuple):
    """The values of each quantity by position of the device in the inventory; those of `gpu_…` are of whole GPUs."""

    busy_ratio: DeviceColumn
    tensor_active_ratio: DeviceColumn
    dram_active_ratio: DeviceColumn
    sm_active_ratio: DeviceColumn
    memory_used_bytes: DeviceColumn
    memory_total_bytes: DeviceColumn
    gpu_power_watts: DeviceColumn
    gpu_power_limit_watts: DeviceColumn
    gpu_energy_joules: DeviceColumn
    gpu_temperature_celsius: DeviceColumn
    gpu_memory_temperature_celsius: DeviceColumn


def device_values(levels: Sequence[Level], by_field: SamplesByField) -> DeviceValues:
    """Return the normalized values; `levels` has one entry per device."""

    def column(field: int) -> DeviceColumn:
        return values_by_device(by_field, field, len(levels))

    used, free = _mib(column(field_ids.FB_USED)), _mib(column(field_ids.FB_FREE))
    energy = column(field_ids.TOTAL_ENERGY_CONSUMPTION)
    return DeviceValues(
        busy_ratio=busy_ratios(levels, by_field),
        tensor_active_ratio=column(field_ids.PIPE_TENSOR_ACTIVE),
        dram_active_ratio=column(field_ids.DRAM_ACTIVE),
        sm_active_ratio=column(field_ids.SM_ACTIVE),
        memory_used_bytes=used,
        memory_total_bytes=_memory_total(used, free),
        gpu_power_watts=column(field_ids.POWER_USAGE),
        gpu_power_limit_watts=column(field_ids.ENFORCED_POWER_LIMIT),
        gpu_energy_joules=[None if value is None else value / _MILLIJOULES for value in energy],
        gpu_temperature_celsius=column(field_ids.GPU_TEMP),
        gpu_memory_temperature_celsius=column(field_ids.MEMORY_TEMP),
    )


def _mib(column: DeviceColumn) -> DeviceColumn:
    return [None if value is None else value * MIB for value in column]


def _memory_total(used: DeviceColumn, free: DeviceColumn) -> DeviceColumn:
    """What can be allocated: used and free together, which is the framebuffer without what the driver reserves.

    None on a GPU without memory of its own, where both are 0.
    """
    pairs = zip(used, free, strict=True)
    return [None if one is None or other is None else (one + other or None) for one, other in pairs]
