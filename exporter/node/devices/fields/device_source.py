"""The interface of a source of device readings (DCGM, NVML, simulated), and its configuration.

A source runs in the reader process. It gets a `ReaderConfig` with the fields to read, and returns `Readings`: the
devices of the node and their samples.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from exporter.node.devices.entities.component import ComponentScope
from exporter.node.devices.entities.component_selection import ComponentSelections
from exporter.node.devices.readings.readings import Readings

SourceName = Literal["auto", "dcgm", "nvml", "simulated"]
"""What `--source` selects. `auto` chooses between `dcgm` and `nvml`."""

FieldKind = Literal["int", "float", "string"]
"""Type of a field's values."""

WatchGroup = Literal["basic", "profiling", "event", "call"]
"""How a library samples a field: from the driver, from the GPU's hardware counters, or when an event (XID) comes.

`call` is no sample of a device: a source reads it by a call of its own, and the read plan leaves it out.
"""

Scope = Literal["system", "gpu", "instance", "link", "vgpu"] | ComponentScope
"""What a field has one value for: the node, a GPU, on a MIG-enabled GPU each MIG device, each NVLink of a GPU, each
vGPU of a hypervisor, or a component."""
DEVICE_SCOPES: frozenset[Scope] = frozenset({"system", "gpu", "instance"})
"""The scopes whose values are those of devices: every source reads them."""


class WantedField(msgspec.Struct, frozen=True, array_like=True):
    """One field of the counters file, as a source gets it."""

    id: int
    """DCGM field id; the same number whichever library is read."""
    kind: FieldKind
    scope: Scope
    watch: WatchGroup
    high: float | None = None
    """Largest possible value in the field's unit; anything above is out of range."""
    low: float | None = None
    """Smallest possible value; anything below is out of range."""
    interval: float | None = None
    """Seconds between samples; None for the collection interval."""


Choice = Literal["host engine", "embedded engine", "nvml"]
"""What the source `auto` reads from."""


class SourceChoice(msgspec.Struct, frozen=True, array_like=True):
    """What the source `auto` has chosen. The next reader process begins with it, instead of choosing anew."""

    chosen: Choice | None = None
    """None while no source is chosen."""
    engine: str | None = None
    """Address of the host engine of this node, once one is known."""
    suspect_since: float | None = None
    """When the chosen source first failed, None while it answers. Seconds of CLOCK_MONOTONIC, which is the same clock
    in every process (clock_gettime(2))."""


class ReaderConfig(msgspec.Struct, frozen=True):
    """What the parent process sends to a reader process once, before the first request."""

    source: SourceName
    fields: tuple[WantedField, ...]
    interval: float
    """Seconds between collections; the host engine is asked to sample at this pace."""
    remote: str | None = None
    """Host engine address as `-r` takes it (host:port, tcp://, unix://); None means an embedded engine."""
    scenario: str | None = None
    """Path of a scenario file for the simulated source; None means the built-in one."""
    libdcgm: str | None = None
    """Path of libdcgm; None means that the loader and the usual folders are searched."""
    bindings: str | None = None
    """Folder of NVIDIA's Python bindings of DCGM; None means where NVIDIA's packages have them."""
    selections: ComponentSelections = ComponentSelections()
    """Which components are read."""
    processes: bool = False
    """Whether the processes on the GPUs are read."""
    choice: SourceChoice | None = None
    """What `auto` had chosen in the last reader process; None in the first."""

    @property
    def first_source(self) -> str:
        """The source that is read first: the configured one, and `dcgm` with `auto`."""
        return "dcgm" if self.source == "auto" else self.source


class DeviceSource(Protocol):
    """What every source of device readings implements, inside the reader process.

    `read` returns the state as of now or raises `exporter.source.SourceError`. It may be called again after a failure
    and then opens what it needs again, with a back-off of its own. `close` releases everything.
    """

    name: str

    @property
    def choice(self) -> SourceChoice | None:
        """What `auto` has chosen; None for a source that has no choice."""
        ...

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on. What is known of the devices stays."""
        ...

    def read(self) -> Readings: ...

    def close(self) -> None: ...
