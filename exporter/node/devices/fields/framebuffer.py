"""Finds devices that have no framebuffer although a library gives zeros for it. No I/O, no state.

So it is of a GPU that shares the memory of its machine, and of one whose driver is still being loaded.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import SampleValue

FieldColumn = tuple[SampleValue, ...]
"""The values of one field, by device."""


def framebuffer_positions(fields: Sequence[int]) -> dict[int, int]:
    """Return the position of each framebuffer field among these fields."""
    return {field: position for position, field in enumerate(fields) if field in field_ids.FRAMEBUFFER}


def without_absent_framebuffer(
    columns: Sequence[FieldColumn], positions: Mapping[int, int]
) -> tuple[Sequence[FieldColumn], Counter[int]]:
    """Return the columns without the framebuffer of devices that have none, and how many values those were, by field.

    A device has none where its size is 0; where the size is not read, where nothing is free, in use or reserved.
    """
    absent = _absent({field: columns[position] for field, position in positions.items()})
    if not absent:
        return columns, Counter()
    kept, removed = list(columns), Counter[int]()
    for field, position in positions.items():
        removed[field] = sum(columns[position][device] is not None for device in absent)
        kept[position] = tuple(None if i in absent else value for i, value in enumerate(columns[position]))
    return kept, removed


def _absent(columns: Mapping[int, FieldColumn]) -> set[int]:
    """Positions of the devices that have no framebuffer."""
    total, free, used, reserved = map(columns.get, field_ids.FRAMEBUFFER[:4])
    if total is not None:
        return {device for device, value in enumerate(total) if value == 0} if 0 in total else set()
    if free is None or used is None or 0 not in free or 0 not in used:
        return set()
    nothing = {device for device, amounts in enumerate(zip(free, used, strict=True)) if amounts == (0, 0)}
    return {device for device in nothing if reserved is None or not reserved[device]}
