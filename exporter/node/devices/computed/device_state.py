"""The states in which a device can be, and how busy each device is. No I/O.

How busy a GPU or a MIG device is: the larger of its compute and its video activity, as in the rules for dcgm-exporter.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.read_plan import Level
from exporter.node.devices.series.metrics import SamplesByField

DeviceColumn = list[int | float | None]
"""One value per device of the inventory, by position; None where there is none."""
IDLE_BELOW = 0.01
"""An allocated device is idle below this share of busy time. The rules have the same threshold; a test compares."""
_PERCENT = 100.0


class DeviceState(StrEnum):
    """The label `state` of `gpugauge_device_state_seconds_total`."""

    BUSY = "busy"
    IDLE = "idle"
    UNALLOCATED = "unallocated"
    SHARED = "shared"
    UNKNOWN = "unknown"


def busy_ratios(levels: Sequence[Level], by_field: SamplesByField) -> DeviceColumn:
    """How busy each device is; None while its compute activity is not known. `levels` has one entry per device.

    NVML's utilization, of compute and of video engines, is that of whole GPUs only.
    """
    ratios = values_by_device(by_field, field_ids.GR_ENGINE_ACTIVE, len(levels))
    if "gpu" not in levels:
        return ratios
    kernels = values_by_device(by_field, field_ids.GPU_UTIL, len(levels))
    video = [values_by_device(by_field, field, len(levels)) for field in field_ids.VIDEO_UTILIZATION]
    for position, level in enumerate(levels):
        if level == "gpu":
            ratios[position] = _busy(ratios[position], kernels[position], [each[position] for each in video])
    return ratios


def _busy(engine: float | None, kernels: float | None, video: Iterable[float | None]) -> float | None:
    """How busy a whole GPU is, of its utilization in percent where it has no engine activity."""
    compute = engine if engine is not None else None if kernels is None else kernels / _PERCENT
    return None if compute is None else max(compute, *(0 if value is None else value / _PERCENT for value in video))


def values_by_device(by_field: SamplesByField, field: int, number: int) -> DeviceColumn:
    """The samples of one field that are numbers, of so many devices by position."""
    found: DeviceColumn = [None] * number
    for devices, column in by_field.get(field, ()):
        for position, value in zip(devices, column, strict=True):
            if isinstance(value, int | float):
                found[position] = value
    return found
