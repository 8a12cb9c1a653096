"""The types into which the JSON of a scenario is decoded: devices, value sets, events over time and allocations.

docs/scenario.md describes the format. A key that is not in this model is an error.
"""

from typing import Literal

import msgspec

from exporter.node.simulation.processes import ProcessSpec
from exporter.node.simulation.script import Script, Sentinel

GpuStateName = Literal["lost", "unsupported", "inaccessible", "disabled", "detached"]
Fields = dict[str, Script]
"""Scripts of values by DCGM field name (of any generation) or field id."""


class ScenarioVersions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the simulated libraries return as their versions."""

    driver: str = "570.133.20"
    nvml: str = "12.570.133.20"
    dcgm: str = "4.2.3"
    cuda: int = 12080


class ComputeInstanceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A compute instance. A field that is not in `fields` has the value of its GPU instance."""

    ci: int
    uuid: str
    """`MIG-…`"""
    profile: str = ""
    """Such as `1c.2g.20gb`; empty means the profile of the GPU instance."""
    slices: int = 1
    use: tuple[str, ...] = ()
    fields: Fields = {}


class GpuInstanceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU instance of a MIG-enabled GPU."""

    gi: int
    profile: str
    slices: int
    memory_mib: int
    compute: tuple[ComputeInstanceSpec, ...] = ()
    profile_id: int = 0
    use: tuple[str, ...] = ()
    fields: Fields = {}


MAX_LINKS = 36
"""NVLinks of a GPU that DCGM 4.6 knows (DCGM_NVLINK_MAX_LINKS_PER_GPU)."""


class NvlinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An NVLink of a GPU or an NVSwitch."""

    number: int
    """From 0."""
    state: Literal["up", "down", "disabled"] = "up"
    use: tuple[str, ...] = ()
    fields: Fields = {}


class VgpuSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vGPU, as the hypervisor has it. Its address is that of its GPU, `/vgpu` and its number."""

    number: int
    """From 1, and another one for each vGPU of the node."""
    uuid: str = ""
    utilization: tuple[int, int, int, int] | None = None
    """Of SMs, framebuffer, video encoder and video decoder, in percent; None where there is no sample."""
    use: tuple[str, ...] = ()
    fields: Fields = {}


class SwitchSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An NVSwitch. Its address is `nvswitch` and its number, that of a link of it `nvswitch0/nvlink0`."""

    number: int
    """From 0."""
    use: tuple[str, ...] = ()
    fields: Fields = {}
    nvlinks: tuple[NvlinkSpec, ...] = ()


class CoreSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A core of a CPU."""

    number: int
    """From 0, and another one for each core of the machine."""
    use: tuple[str, ...] = ()
    fields: Fields = {}


class CpuSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Grace CPU. Its address is `cpu` and its number, that of a core of it `cpu0/core0`."""

    number: int
    """From 0."""
    serial: str = ""
    use: tuple[str, ...] = ()
    fields: Fields = {}
    cores: tuple[CoreSpec, ...] = ()


class GpuSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU."""

    uuid: str
    index: int
    pci_bus_id: str
    model: str
    memory_mib: int
    """0 on a GPU that has no memory of its own but shares that of its machine."""
    minor: int = -1
    """N of /dev/nvidiaN; -1 means the same as `index`."""
    serial: str = ""
    architecture: str = ""
    numa_node: int = -1
    vbios: str = ""
    compute_capability: tuple[int, int] = (9, 0)
    mig: bool | None = None
    """Whether MIG mode is on; None means that the GPU does not support MIG."""
    max_slices: int = 7
    use: tuple[str, ...] = ()
    fields: Fields = {}
    instances: tuple[GpuInstanceSpec, ...] = ()
    nvlinks: tuple[NvlinkSpec, ...] = ()
    vgpus: tuple[VgpuSpec, ...] = ()

    @property
    def device_minor(self) -> int:
        """The minor number after the default is applied."""
        return self.index if self.minor < 0 else self.minor


class SampleFault(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="samples", rename={"for_": "for"}
):
    """Some samples have a sentinel or a status instead of a value, or a timestamp that stands still.

    `devices` lists addresses (`GPU-…`, `GPU-…/gi`, `GPU-…/gi/ci`, `GPU-…/nvlink0`, `GPU-…/vgpu1`, or that of a
    component); empty means every device and component. Empty `fields` means every field but those of identity.
    """

    at: float = 0.0
    for_: float | None = None
    devices: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    sentinel: Sentinel | None = None
    status: int = 0
    stale: bool = False


class CallFault(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="call", rename={"for_": "for"}
):
    """A library function returns an error, is slow, hangs or aborts the process.

    The function `*` is every function, `read` the read of the simulated source. With a `device` (an address) or a
    `field`, only calls of libdcgm about that device, that field, or both; of NVML, calls about that GPU or vGPU, and
    with a `field` that field's value in nvmlDeviceGetFieldValues.
    """

    function: str
    at: float = 0.0
    for_: float | None = None
    status: int = 0
    delay: float = 0.0
    """Seconds."""
    hang: bool = False
    crash: bool = False
    device: str = ""
    """Address of the device whose calls are concerned; empty means every one. Of NVML, a GPU with its MIG devices."""
    field: str = ""

    @property
    def about_all(self) -> bool:
        """Whether every call of the function is meant."""
        return not (self.device or self.field)


class Disconnect(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="event",
    tag="disconnect",
    rename={"for_": "for"},
):
    """The host engine cannot be reached; a connection from before does not recover."""

    at: float
    for_: float | None = None


class EngineRestart(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="restart", rename={"for_": "for"}
):
    """The host engine stops and starts again after `for_` seconds, with other entity ids and without any watch."""

    at: float
    for_: float = 0.0


class GpuLoss(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="event",
    tag="lost",
    rename={"for_": "for", "seen": "as"},
):
    """A GPU is lost: its samples have status -18 or fresh blanks, or it is not listed at all (`absent`).

    `state` is what libdcgm reports of it, by name; libdcgm has samples of an unsupported GPU, but watches none. From a
    GPU that is `detached` the driver was unbound: NVML reports that as an event, and lists it no more.
    """

    device: str
    at: float
    for_: float | None = None
    seen: Literal["status", "blank", "absent"] = "status"
    state: GpuStateName = "lost"

    @property
    def is_unbinding(self) -> bool:
        """Whether the driver is unbound from the GPU, and bound to it again at the end."""
        return self.state == "detached"


class MigChange(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="mig", rename={"for_": "for"}
):
    """A GPU has these GPU instances and no others."""

    device: str
    at: float
    for_: float | None = None
    mig: bool = True
    instances: tuple[GpuInstanceSpec, ...] = ()


class XidEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="xid"):
    """The driver reports an XID on a GPU or a MIG device; `device` is an address."""

    device: str
    at: float
    xid: int


ScenarioEvent = SampleFault | CallFault | Disconnect | EngineRestart | GpuLoss | MigChange | XidEvent


class ScenarioAllocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """The devices of one container, by the ids that a device plugin gave the kubelet, from one time to another."""

    namespace: str
    pod: str
    container: str
    resource: str
    devices: tuple[str, ...]
    claim: str = ""
    """The ResourceClaim through which the devices were given, as `<pool>/<device>` of the driver `resource`."""
    from_: float = 0.0
    until: float | None = None


class ScenarioDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole scenario."""

    about: str
    devices: tuple[GpuSpec, ...]
    versions: ScenarioVersions = ScenarioVersions()
    values: dict[str, Fields] = {}
    """Value sets by name, for `use`."""
    events: tuple[ScenarioEvent, ...] = ()
    allocations: tuple[ScenarioAllocation, ...] = ()
    processes: tuple[ProcessSpec, ...] = ()
    switches: tuple[SwitchSpec, ...] = ()
    cpus: tuple[CpuSpec, ...] = ()
    profiling_module: bool = True
    """Whether the engine can profile GPUs before Hopper, which takes a module that it may lack."""
    epoch: float | None = None
    """Unix seconds at which the scenario begins; None means when the process that simulates it starts."""
