"""Which field is asked of which device: the same plan for every source.

A field is asked where its value is its own: board quantities on the board, memory and engine activity on the board
or, when it has instances, on those. Where compute instances share a GPU instance, their activity is their own and
the rest (framebuffer, and DRAM activity, which the library keeps per GPU instance only) is the GPU instance's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from exporter.node.devices.readings import Device, WantedField

Level = Literal["board", "mig_board", "instance", "shared_instance", "compute_instance"]
Watch = Literal["basic", "profiling", "event"]

LEVELS: tuple[Level, ...] = ("board", "mig_board", "instance", "shared_instance", "compute_instance")
WATCHES: tuple[Watch, ...] = ("basic", "profiling", "event")
GPU_INSTANCE_ONLY = frozenset({1005})
"""DCGM_FI_PROF_DRAM_ACTIVE: a compute instance reads blank."""


@dataclass(frozen=True, slots=True)
class Request:
    """A rectangle to ask for: every one of these fields on every one of these devices (inventory indices)."""

    level: Level
    watch: Watch
    devices: tuple[int, ...]
    fields: tuple[int, ...]


def plan(inventory: Sequence[Device], fields: Sequence[WantedField]) -> tuple[Request, ...]:
    """The requests of one pass, by level and watch group; none is empty and no pair is asked twice."""
    levels = device_levels(inventory)
    requests = (
        Request(
            level,
            watch,
            tuple(index for index, own in enumerate(levels) if own == level),
            tuple(f.id for f in unique(fields) if f.watch == watch and asked_at(f, level)),
        )
        for level in LEVELS
        for watch in WATCHES
    )
    return tuple(request for request in requests if request.devices and request.fields)


def device_levels(inventory: Sequence[Device]) -> tuple[Level, ...]:
    """What each device of the inventory is to the plan."""
    divided = {device.uuid for device in inventory if device.gi >= 0}
    shared = {(device.uuid, device.gi) for device in inventory if device.ci >= 0}
    return tuple(_level(device, divided, shared) for device in inventory)


def _level(device: Device, divided: set[str], shared: set[tuple[str, int]]) -> Level:
    if device.ci >= 0:
        return "compute_instance"
    if device.gi >= 0:
        return "shared_instance" if (device.uuid, device.gi) in shared else "instance"
    return "mig_board" if device.uuid in divided else "board"


def asked_at(field: WantedField, level: Level) -> bool:
    """Whether a device of that level has a value of its own for the field that no other device has."""
    match level:
        case "board":
            return True
        case "mig_board":
            return field.scope != "instance"
    if field.scope != "instance":
        return False
    of_compute = field.watch == "profiling" and field.id not in GPU_INSTANCE_ONLY
    return level == "instance" or of_compute == (level == "compute_instance")


def unique(fields: Sequence[WantedField]) -> tuple[WantedField, ...]:
    """The fields without those whose id came before: a counters file may spell one field twice."""
    return tuple({field.id: field for field in reversed(fields)}[i] for i in dict.fromkeys(f.id for f in fields))
