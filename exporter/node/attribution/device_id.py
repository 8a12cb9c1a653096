"""What the device ids of the kubelet mean: every spelling that device plugins use, as a reference to a device.

Spellings: the NVIDIA plugin's UUIDs with replica suffix, the older MIG form, GKE's device file names, HAMi's
slots, PCI addresses of passthrough plugins, and bare indices.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.node.attribution.allocation import Allocation

Share = Literal["exclusive", "replica", "fraction", "passthrough"]
"""How the id says the device is given out; a replica is one of several slots, by time-slicing or MPS."""


@dataclass(frozen=True, slots=True)
class Uuid:
    """A whole GPU, by its UUID in lower case."""

    uuid: str


@dataclass(frozen=True, slots=True)
class MigUuid:
    """A MIG instance by its opaque UUID (drivers since R470), or by the older form as it stands; lower case."""

    uuid: str


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG instance by its parent, GPU instance id, and compute instance id (-1 where the id names none)."""

    parent: "Uuid | Minor"
    gi: int
    ci: int


@dataclass(frozen=True, slots=True)
class Minor:
    """The GPU of the device file /dev/nvidiaN."""

    number: int


@dataclass(frozen=True, slots=True)
class Index:
    """The GPU with this NVML index."""

    number: int


@dataclass(frozen=True, slots=True)
class PciAddress:
    """The GPU at this address, spelled like `exporter.node.devices.readings.Device.pci_bus_id`."""

    address: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A device of a resource claim, which only the API server's ResourceSlices can explain."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No spelling we know; `all` and `tegra`, which name no device, are among these."""

    text: str


Target = Uuid | MigUuid | Instance | Minor | Index | PciAddress | Claim | Unknown


class Reference(NamedTuple):
    """A device id understood. `slot` tells the shares of one device apart; empty on an exclusive one."""

    target: Target
    share: Share = "exclusive"
    slot: str = ""


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


def _gke(match: re.Match[str]) -> Reference:
    minor, gi, slot = match.groups()
    target: Target = Minor(int(minor))
    if gi is not None:
        target = Instance(Minor(int(minor)), int(gi), -1)
    return Reference(target) if slot is None else Reference(target, "replica", slot)


def _legacy_mig(match: re.Match[str]) -> Reference:
    parent, gi, ci = match.groups()
    return Reference(Instance(Uuid(parent), int(gi), int(ci)))


def _pci(match: re.Match[str]) -> Reference:
    domain, bus, device, function = match.groups()
    address = f"{int(domain or '0', 16):08X}:{bus}:{device}.{function}".upper()
    return Reference(PciAddress(address), "passthrough")


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Reference]], ...] = (
    (_GKE, _gke),
    (_LEGACY_MIG, _legacy_mig),
    (_MIG, lambda match: Reference(MigUuid(match[0]))),
    # Before the plain UUID: only the exact shape of a UUID tells HAMi's suffix from a part of the UUID itself.
    (_HAMI, lambda match: Reference(Uuid(match[1]), "fraction", match[2])),
    (_GPU, lambda match: Reference(Uuid(match[0]))),
    (_PCI, _pci),
    (_INDEX, lambda match: Reference(Index(int(match[0])))),
)


def parse(device_id: str) -> Reference:
    """What the id refers to; never fails, an unknown spelling is an `Unknown` target.

    Everything from the first `::` on is the NVIDIA plugin's replica suffix, whatever stands before it; the
    number is an arbitrary slot, not a share of the device.
    """
    spelled, replicated, slot = device_id.partition("::")
    lowered = spelled.lower()
    for form, read in _FORMS:
        match = form.fullmatch(lowered)
        if match:
            reference = read(match)
            return Reference(reference.target, "replica", slot) if replicated else reference
    return Reference(Unknown(device_id))


# The NVIDIA plugin's names; a MIG profile such as 1g.10gb+me is spelled with a dot there.
_GPU_RESOURCE = re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.+)")
_GPU_DRIVER = "gpu.nvidia.com"


def names_gpu(resource: str, extra: frozenset[str] = frozenset()) -> bool:
    """Whether the resource counts GPUs: the NVIDIA plugin's names, its DRA driver, and the configured ones."""
    return resource == _GPU_DRIVER or resource in extra or _GPU_RESOURCE.fullmatch(resource) is not None


def reference(allocation: Allocation) -> Reference:
    """What the allocation's device id refers to, a claim's device told apart from a device plugin's."""
    if allocation.resource == _GPU_DRIVER:
        return Reference(Claim(allocation.device_id))
    return parse(allocation.device_id)


_NOT_IN_LABEL = re.compile(r"[^A-Za-z0-9_]")


def resource_label(resource: str) -> str:
    """The resource as kube-state-metrics spells it: `nvidia_com_gpu`."""
    return _NOT_IN_LABEL.sub("_", resource)
