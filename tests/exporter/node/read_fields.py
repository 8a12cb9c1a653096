"""The fields that sources can read, and those of them that the NVML source does not have."""

from collections.abc import Iterable

from exporter.node.devices.fields.device_source import DEVICE_SCOPES
from exporter.node.devices.fields.field import fields

READ = {number: field for number, field in fields().items() if field.is_read and field.scope in DEVICE_SCOPES}
"""The fields of GPUs, MIG devices and the node, by id."""


def _each(*ranges: int | tuple[int, int]) -> Iterable[int]:
    """Return the ids of READ in these ranges, which contain both of their ends."""
    for each in ranges:
        first, last = each if isinstance(each, tuple) else (each, each)
        yield from (number for number in range(first, last + 1) if number in READ)


NOT_IN_NVML = {
    **dict.fromkeys(_each(3, 6, (350, 363)), "facts about the engine itself"),
    **dict.fromkeys(_each(58, 59, 64, 68, (70, 74), 83, 84, (86, 89)), "asked for by few: identity"),
    **dict.fromkeys(_each(120), "a setting of GPUs before Pascal"),
    **dict.fromkeys(_each(200, 201), "NVML measures for 20 ms in each call: too long for a collection"),
    **dict.fromkeys(_each((334, 336), (338, 340), (342, 345)), "no field value of NVML is the same quantity"),
    **dict.fromkeys(_each((440, 448), (475, 480), (494, 496), (825, 842), (879, 896)), "rates of single NVLinks"),
    **dict.fromkeys(_each(450, (497, 499)), "the engine's sums over single links"),
    **dict.fromkeys(_each((571, 577)), "where the GPU is in the rack"),
    **dict.fromkeys(_each((1080, 1096)), "counters that DCGM has since 4.4 and 4.6"),
    **dict.fromkeys(_each((1425, 1442)), "power smoothing"),
    **dict.fromkeys(_each(1502, 1503), "the engine runs a program that asks IMEX"),
    **dict.fromkeys(_each(1507), "no field value of NVML is the same quantity"),
    **dict.fromkeys(_each((1600, 1612)), "the same in base units, which no engine up to 4.6.0 has"),
}
"""Fields that the NVML source does not read, and why."""
