"""What one pass over the devices of a node gave: plain data, the same from every source.

The reader child sends a `Readings` through its pipe as msgpack; the parent never sees a library's own types.
"""

from typing import Literal, Protocol

import msgspec

Cell = int | float | str | None
"""A value as the library gave it, in the field's own unit; None where there is none to show."""

RejectReason = Literal["blank", "not_found", "not_supported", "no_permission", "out_of_range", "stale"]


class Device(msgspec.Struct, frozen=True, array_like=True):
    """A GPU, a MIG instance (gi >= 0), or a compute instance that shares its GPU instance (ci >= 0).

    Identity is (uuid, gi, ci, profile); index and minor are for people and paths only.
    """

    uuid: str
    """`GPU-…` of the board, also for an instance."""
    index: int
    """NVML index of the board."""
    pci_bus_id: str
    """`00000000:07:00.0`, eight-digit domain, upper case."""
    minor: int
    """N of /dev/nvidiaN; -1 when unknown."""
    model: str
    """Product name of the board as the driver spells it."""
    gi: int = -1
    """NVML GPU instance id; -1 on a board."""
    ci: int = -1
    """NVML compute instance id, only where several share one GPU instance; else -1."""
    profile: str = ""
    """MIG profile such as `1g.10gb`; empty on a board."""
    mig_uuids: tuple[str, ...] = ()
    """The `MIG-…` uuids that mean this instance: one per compute instance inside it."""
    serial: str = ""
    architecture: str = ""
    driver_version: str = ""
    mig_enabled: bool | None = None
    """Whether MIG mode is on; None when unknown or not applicable."""
    numa_node: int = -1


class Block(msgspec.Struct, frozen=True, array_like=True):
    """A rectangle of cells: `columns[f][d]` is field `fields[f]` of `devices[d]` (indices into the inventory)."""

    devices: tuple[int, ...]
    fields: tuple[int, ...]
    columns: tuple[tuple[Cell, ...], ...]


class Rejection(msgspec.Struct, frozen=True, array_like=True):
    """How many cells of one field were not shown in this pass, and why."""

    field: int
    reason: RejectReason
    count: int


class Readings(msgspec.Struct, frozen=True):
    """Everything read from the devices in one pass."""

    source: str
    """`dcgm`, `nvml` or `simulated`."""
    taken_at: float
    """Seconds since the epoch, when the pass began."""
    inventory: tuple[Device, ...]
    blocks: tuple[Block, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    down: tuple[str, ...] = ()
    """UUIDs of boards that are known but cannot be read now (lost, reset required)."""
    problems: tuple[tuple[str, str], ...] = ()
    """(reason, sentence): what is wrong while the source as a whole still answers, e.g. profiling unavailable."""
    versions: dict[str, str] = {}
    """`dcgm`, `nvml`, `driver`: version texts as far as known."""


class WantedField(msgspec.Struct, frozen=True, array_like=True):
    """One field of the counters file, as far as a reader needs to know it."""

    id: int
    """DCGM field id; the same number whichever library is read."""
    kind: Literal["int", "float", "string"]
    scope: Literal["system", "board", "instance"]
    """The finest level that has a value of its own: the node, the board, or the MIG instance when there are any."""
    watch: Literal["basic", "profiling", "event"]
    high: float | None = None
    """Largest possible value in the field's unit; anything above is out of range."""


class ReaderConfig(msgspec.Struct, frozen=True):
    """What the parent tells a reader child once, before the first request."""

    source: Literal["auto", "dcgm", "nvml", "simulated"]
    fields: tuple[WantedField, ...]
    interval: float
    """Seconds between passes; the engine is asked to sample at this pace."""
    remote: str | None = None
    """Host engine address as `-r` takes it (host:port, tcp://, unix://); None means embedded."""
    scenario: str | None = None
    """Path of a scenario file for the simulated source; None plays the built-in one."""
    library: str | None = None
    """Path of libdcgm; None lets the loader and the usual folders find it."""


class DeviceSource(Protocol):
    """What every source of device readings offers, inside the reader child.

    `read` returns the truth as of now or raises `exporter.source.SourceError`; it may be called again after a
    failure and then tries to open what it needs afresh (with its own back-off).
    """

    name: str

    def read(self) -> Readings: ...

    def close(self) -> None: ...
