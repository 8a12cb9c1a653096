"""What a source of device readings offers, and what the parent process configures it with."""

from typing import Literal, Protocol

import msgspec

from exporter.node.devices.readings import Readings

WatchGroup = Literal["basic", "profiling", "event"]
"""How a library samples a field: from the driver, from the GPU's hardware counters, or when an event (XID) comes."""

Scope = Literal["system", "gpu", "instance"]
"""What has a value of its own: the node, the GPU, or, where the GPU has MIG devices, each of those."""


class WantedField(msgspec.Struct, frozen=True, array_like=True):
    """What a source needs to know of one field of the counters file."""

    id: int
    """DCGM field id; the same number whichever library is read."""
    kind: Literal["int", "float", "string"]
    scope: Scope
    watch: WatchGroup
    high: float | None = None
    """Largest possible value in the field's unit; anything above is out of range."""


class ReaderConfig(msgspec.Struct, frozen=True):
    """What the parent process sends to a reader process once, before the first request."""

    source: Literal["auto", "dcgm", "nvml", "simulated"]
    fields: tuple[WantedField, ...]
    interval: float
    """Seconds between collections; the host engine is asked to sample at this pace."""
    remote: str | None = None
    """Host engine address as `-r` takes it (host:port, tcp://, unix://); None means an embedded engine."""
    scenario: str | None = None
    """Path of a scenario file for the simulated source; None means the built-in one."""
    library: str | None = None
    """Path of libdcgm; None means that the loader and the usual folders are searched."""


class DeviceSource(Protocol):
    """What every source of device readings offers, inside the reader process.

    `read` returns the state as of now or raises `exporter.source.SourceError`. It may be called again after a failure
    and then opens what it needs again, with a back-off of its own.
    """

    name: str

    def read(self) -> Readings: ...

    def close(self) -> None: ...
