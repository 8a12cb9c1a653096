"""Parses the device ids that the kubelet lists, in the known spellings of device plugins. No I/O, no state.

The result refers to a device by UUID, MIG instance ids, device file, NVML index or PCI address, and names the replica
or fraction of it, if the id does. Spellings: the NVIDIA plugin's UUIDs with a replica suffix,
`MIG-GPU-<uuid>/<gi>/<ci>` (before R470), GKE's device file names, numbered shares of HAMi and Volcano, PCI addresses of
passthrough plugins, and bare indices where a resource is configured to have them. Devices of ResourceClaims are
recognized, and so are resources of AMD and Intel.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.gpu_names import GPU_DRIVER, OTHER_VENDORS, VOLCANO, GpuResources, ResourcePatterns
from exporter.node.attribution.allocation import UNLISTED, Allocation
from exporter.node.dra.device import DraDevice
from exporter.node.dra.knowledge import NO_KNOWLEDGE, DraKnowledge
from exporter.node.dra.resource_slices import ClaimableKey

Share = Literal["exclusive", "replica", "fraction", "claim-share", "passthrough"]
"""How a device is shared, as far as the id shows.

Replica: one of several through time-slicing or MPS. Fraction: a share given by HAMi or Volcano. Claim-share: one of
those that ResourceClaims have of a device. Passthrough: given to a virtual machine. Exclusive: the id shows no sharing.
"""


@dataclass(frozen=True, slots=True)
class GpuUuid:
    """A whole GPU, by its UUID in lower case."""

    uuid: str


@dataclass(frozen=True, slots=True)
class MigUuid:
    """A MIG device by its opaque UUID (drivers since R470) in lower case."""

    uuid: str


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG device by its parent GPU, GPU instance id, and compute instance id (-1 where the id names none)."""

    parent: "GpuUuid | DeviceMinor"
    gi: int
    ci: int


@dataclass(frozen=True, slots=True)
class DeviceMinor:
    """The GPU of the device file /dev/nvidiaN."""

    number: int


@dataclass(frozen=True, slots=True)
class NvmlIndex:
    """The GPU with this NVML index."""

    number: int


@dataclass(frozen=True, slots=True)
class PciAddress:
    """The GPU at this address, such as `00000000:07:00.0`, in upper case."""

    address: str


@dataclass(frozen=True, slots=True)
class ClaimDevice:
    """A device of a ResourceClaim, with what is known of it."""

    device: DraDevice


@dataclass(frozen=True, slots=True)
class OtherVendorDevice:
    """A device of a resource of AMD or Intel, whose ids spell no NVIDIA device: no device that is read is meant.

    AMD's plugin spells whole GPUs as PCI addresses and partitions as `amdgpu_xcp_N`, Intel's `card<N>-<share>`.
    """

    text: str


@dataclass(frozen=True, slots=True)
class UnlistedDevice:
    """A device of a container, of which nothing says which one it is."""

    text: str


@dataclass(frozen=True, slots=True)
class UnknownId:
    """An unknown spelling; `all` and `tegra`, which name no device, are among these."""

    text: str

    @property
    def empty(self) -> bool:
        """Whether nothing is spelled, except perhaps a replica suffix: such an id means no device."""
        return not self.text.partition("::")[0].strip()


DeviceTarget = (
    GpuUuid
    | MigUuid
    | MigInstance
    | DeviceMinor
    | NvmlIndex
    | PciAddress
    | ClaimDevice
    | OtherVendorDevice
    | UnlistedDevice
    | UnknownId
)


class DeviceReference(NamedTuple):
    """A parsed device id. `replica` is the id of the replica or the number of the fraction; else empty."""

    target: DeviceTarget
    share: Share = "exclusive"
    replica: str = ""


_NUMBER = "([0-9]{1,9})"
_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

_GKE = re.compile(rf"nvidia{_NUMBER}(?:/gi{_NUMBER})?(?:/vgpu{_NUMBER})?")
_LEGACY_MIG = re.compile(rf"mig-(gpu-[^/]+)/{_NUMBER}/{_NUMBER}")
_MIG = re.compile(r"mig-[^/]+")
_HAMI = re.compile(rf"(gpu-{_UUID})-{_NUMBER}")
_GPU = re.compile(r"gpu-[^/]+")
_PCI = re.compile(rf"(?:({_HEX}{{4,8}}):)?({_HEX}{{2}}):({_HEX}{{2}})\.([0-7])")
_INDEX = re.compile(_NUMBER)


def _gke(match: re.Match[str]) -> DeviceReference:
    minor, gi, replica = match.groups()
    target: DeviceTarget = DeviceMinor(int(minor))
    if gi is not None:
        target = MigInstance(DeviceMinor(int(minor)), int(gi), -1)
    return DeviceReference(target) if replica is None else DeviceReference(target, "replica", replica)


def _legacy_mig(match: re.Match[str]) -> DeviceReference:
    parent, gi, ci = match.groups()
    return DeviceReference(MigInstance(GpuUuid(parent), int(gi), int(ci)))


def _pci(match: re.Match[str]) -> DeviceReference:
    domain, bus, device, function = match.groups()
    address = f"{int(domain or '0', 16):08X}:{bus}:{device}.{function}".upper()
    return DeviceReference(PciAddress(address), "passthrough")


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], DeviceReference]], ...] = (
    (_GKE, _gke),
    (_LEGACY_MIG, _legacy_mig),
    (_MIG, lambda match: DeviceReference(MigUuid(match[0]))),
    # Before _GPU, which would match too. The full pattern of a UUID shows where it ends and the number of HAMi begins.
    (_HAMI, lambda match: DeviceReference(GpuUuid(match[1]), "fraction", match[2])),
    (_GPU, lambda match: DeviceReference(GpuUuid(match[0]))),
    (_PCI, _pci),
)
_WITH_INDICES = (*_FORMS, (_INDEX, lambda match: DeviceReference(NvmlIndex(int(match[0])))))


def parse(device_id: str, *, indices: bool = False) -> DeviceReference:
    """Parse a device id. Never fails: an unknown spelling gives an `UnknownId` target.

    A bare number is an index of NVML with `indices`, otherwise unknown: a plugin can number anything. In a known
    spelling, the text after the first `::` is the id that the NVIDIA plugin gave to a replica; its number does not
    state a share of the device. An unknown id is kept whole.
    """
    spelled, replicated, replica = device_id.partition("::")
    lowered = spelled.lower()
    for form, read in _WITH_INDICES if indices else _FORMS:
        match = form.fullmatch(lowered)
        if match:
            reference = read(match)
            return DeviceReference(reference.target, "replica", replica) if replicated else reference
    return DeviceReference(UnknownId(device_id))


def names_gpu(resource: str, gpus: GpuResources) -> bool:
    """Whether the kubelet's resource name means GPUs, through a device plugin or NVIDIA's DRA driver.

    For a device of a ResourceClaim the kubelet reports the driver in place of a resource name.
    """
    return resource == GPU_DRIVER or resource in gpus


_NO_RESOURCES = ResourcePatterns()


def reference(
    allocation: Allocation, indexed: ResourcePatterns = _NO_RESOURCES, dra: DraKnowledge = NO_KNOWLEDGE
) -> DeviceReference:
    """Parse an allocation's device id by its resource; `indexed` are the resources whose ids are indices of NVML.

    For a device of a ResourceClaim it is no device plugin's id, and `dra` has what is known of it.
    """
    resource = allocation.resource
    if resource == GPU_DRIVER:
        return _claimed(allocation, dra.device(device_key(allocation)))
    if allocation.device_id.startswith(UNLISTED):
        return DeviceReference(UnlistedDevice(allocation.device_id))
    meant = parse(allocation.device_id, indices=resource in indexed)
    if resource.startswith(OTHER_VENDORS) and isinstance(meant.target, PciAddress | UnknownId):
        return DeviceReference(OtherVendorDevice(allocation.device_id))
    return meant


def device_key(allocation: Allocation) -> ClaimableKey:
    """What identifies the device of a ResourceClaim: a pool's name may have slashes, a device's has none."""
    pool, _, name = allocation.device_id.rpartition("/")
    return ClaimableKey(allocation.resource, pool, name)


def _claimed(allocation: Allocation, device: DraDevice) -> DeviceReference:
    if device.type == "vfio":
        return DeviceReference(ClaimDevice(device), "passthrough")
    shared = device.shares or allocation.claim.share_id
    return DeviceReference(ClaimDevice(device), "claim-share" if shared else "exclusive")


def placed_by_scheduler(resource: str, share: Share) -> bool:
    """Whether a scheduler's annotations, and not the device id, decide which GPU the container has.

    HAMi before 2.9 and Volcano put a container on other GPUs than the kubelet recorded.
    """
    return share == "fraction" or resource == VOLCANO
