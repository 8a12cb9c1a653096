"""Makes the read plan: which fields are read of which devices, the same for every source. No I/O, no state.

In: the devices of the node and the fields of the counters file. Out: requests, each a set of fields and of devices.
A field is read at the smallest device that has a value of its own: GPU quantities (power, temperature, clocks) at the
GPU; memory and engine activity at the GPU or, where it has MIG devices, at those. Where compute instances share a GPU
instance, each has its own engine activity; framebuffer and DRAM activity belong to the GPU instance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from exporter.node.devices.entities.device import Device
from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.device_source import DEVICE_SCOPES, Scope, WantedField, WatchGroup

Level = Literal["gpu", "mig_enabled_gpu", "instance", "shared_instance", "compute_instance"]
"""Kinds of devices that differ in what is read of them. `instance` is a GPU instance with one compute instance,
`shared_instance` one with several, which are each a `compute_instance`; `mig_enabled_gpu` is a GPU with MIG devices."""

LEVELS: tuple[Level, ...] = ("gpu", "mig_enabled_gpu", "instance", "shared_instance", "compute_instance")
PARTITIONED: frozenset[Level] = frozenset({"mig_enabled_gpu", "shared_instance"})
"""The levels of devices that consist of smaller ones, so that they cannot themselves be allocated."""
WATCH_GROUPS: tuple[WatchGroup, ...] = ("basic", "profiling", "event")
GPU_INSTANCE_ONLY = frozenset({field_ids.DRAM_ACTIVE})
"""Profiling fields that DCGM has per GPU instance; it returns a blank value for a compute instance."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Fields to read of devices: each of these fields of each of these devices (positions in the inventory)."""

    level: Level
    watch: WatchGroup
    devices: tuple[int, ...]
    fields: tuple[int, ...]
    interval: float | None = None
    """Seconds between samples; None for the collection interval."""


def plan(inventory: Sequence[Device], fields: Sequence[WantedField]) -> tuple[ReadRequest, ...]:
    """Plan one collection, by level, watch group and interval. No request is empty; no field of a device is in two."""
    levels, wanted = device_levels(inventory), unique(fields)
    paces = tuple(dict.fromkeys((watch, f.interval) for watch in WATCH_GROUPS for f in wanted if f.watch == watch))
    requests = (
        ReadRequest(
            level,
            watch,
            tuple(index for index, own in enumerate(levels) if own == level),
            tuple(f.id for f in wanted if (f.watch, f.interval) == (watch, interval) and read_at(f, level)),
            interval,
        )
        for level in LEVELS
        for watch, interval in paces
    )
    return tuple(request for request in requests if request.devices and request.fields)


def device_levels(inventory: Sequence[Device]) -> tuple[Level, ...]:
    """The level of each device of the inventory."""
    partitioned = {device.uuid for device in inventory if device.gi >= 0}
    shared = {(device.uuid, device.gi) for device in inventory if device.ci >= 0}
    return tuple(_level(device, partitioned, shared) for device in inventory)


def _level(device: Device, partitioned: set[str], shared: set[tuple[str, int]]) -> Level:
    if device.ci >= 0:
        return "compute_instance"
    if device.gi >= 0:
        return "shared_instance" if (device.uuid, device.gi) in shared else "instance"
    return "mig_enabled_gpu" if device.uuid in partitioned else "gpu"


def read_at(field: WantedField, level: Level) -> bool:
    """Whether a device of that level has a value of its own of the field."""
    match level:
        case "gpu":
            return field.scope in DEVICE_SCOPES
        case "mig_enabled_gpu":
            return field.scope in DEVICE_SCOPES - {"instance"}
    if field.scope != "instance":
        return False
    of_compute = field.watch == "profiling" and field.id not in GPU_INSTANCE_ONLY
    return level == "instance" or of_compute == (level == "compute_instance")


def fields_of(scope: Scope, fields: Sequence[WantedField]) -> tuple[int, ...]:
    """Return the ids of the fields of this scope, each once."""
    return tuple(dict.fromkeys(field.id for field in fields if field.scope == scope))


def unique(fields: Sequence[WantedField]) -> tuple[WantedField, ...]:
    """Return each field once: a counters file may name one field by two spellings."""
    return tuple({field.id: field for field in reversed(fields)}[i] for i in dict.fromkeys(f.id for f in fields))
