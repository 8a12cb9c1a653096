"""The states in which a device can be, and how busy each device is. No I/O.

How busy a GPU or a MIG device is: the larger of its compute and its video activity, as the recording rules define it.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from exporter.node.devices import field_ids
from exporter.node.devices.metrics import SamplesByField
from exporter.node.devices.read_plan import Level

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


def busy_ratios(levels: Sequence[Level], by_field: SamplesByField) -> list[float | None]:
    """How busy each device is; None while its compute activity is not known. `levels` has one entry per device.

    NVML's utilization, of compute and of video engines, is that of whole GPUs only.
    """
    of_all = [True] * len(levels)
    of_gpus = [level == "gpu" for level in levels]
    engine = _values(by_field, field_ids.GR_ENGINE_ACTIVE, of_all)
    kernels = _values(by_field, field_ids.GPU_UTIL, of_gpus, _PERCENT)
    video = [_values(by_field, field, of_gpus, _PERCENT) for field in field_ids.VIDEO_UTILIZATION]
    ratios: list[float | None] = []
    for position in range(len(levels)):
        compute = kernels[position] if engine[position] is None else engine[position]
        ratios.append(None if compute is None else _largest([compute, *(each[position] for each in video)]))
    return ratios


def _largest(values: Iterable[float | None]) -> float:
    return max(value for value in values if value is not None)


def _values(by_field: SamplesByField, field: int, has: Sequence[bool], unit: float = 1.0) -> list[float | None]:
    """The samples of one field by position of the device, divided by `unit`; None where there is none."""
    found: list[float | None] = [None] * len(has)
    for devices, column in by_field.get(field, ()):
        for position, value in zip(devices, column, strict=True):
            if has[position] and isinstance(value, int | float):
                found[position] = value / unit
    return found
