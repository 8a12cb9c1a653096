"""Which devices NVIDIA's DRA driver offers on this node, from its ResourceSlices. No I/O.

A pool, which is a node, has one slice or several, and only those of its newest generation count.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from exporter.api_objects.device_claims import WireDevice, WirePool, WireResourceSlice, WireSliceSpec
from exporter.gpu_names import GPU_DRIVER
from exporter.node.dra.device import DraDevice, DraType, named, profile_in_names

_TYPES: dict[str, DraType] = {"gpu": "gpu", "mig": "mig", "vfio": "vfio"}


class ClaimableKey(NamedTuple):
    """What identifies a device that can be claimed."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """One slice of a pool of NVIDIA's DRA driver."""

    pool: str
    generation: int
    devices: tuple[tuple[str, DraDevice], ...]
    """Each with its name."""


def resource_slice(text: msgspec.Raw) -> SliceFacts | None:
    """Decode a slice in any version of the API; None for another driver's. Raises msgspec.DecodeError."""
    spec = msgspec.json.decode(text, type=WireResourceSlice).spec or WireSliceSpec()
    if spec.driver != GPU_DRIVER:
        return None
    pool = spec.pool or WirePool()
    return SliceFacts(pool.name, pool.generation, tuple((each.name, _device(each)) for each in spec.devices or ()))


def offered_devices(slices: Iterable[SliceFacts]) -> Mapping[ClaimableKey, DraDevice]:
    """The devices of the newest generation of each pool."""
    newest: dict[str, int] = {}
    slices = tuple(slices)
    for each in slices:
        newest[each.pool] = max(each.generation, newest.get(each.pool, each.generation))
    return {
        ClaimableKey(GPU_DRIVER, each.pool, name): device
        for each in slices
        if each.generation == newest[each.pool]
        for name, device in each.devices
    }


def _device(decoded: WireDevice) -> DraDevice:
    """Add the attributes to what the name shows. The first memory slice of a MIG device is in its name alone."""
    known = named(decoded.name)
    kind = _TYPES.get(decoded.text("type"), known.type)
    return replace(
        known,
        type=kind,
        # That of a GPU that is passed through is made of its address (source): it names no GPU.
        uuid="" if kind == "vfio" else decoded.text("uuid"),
        parent_uuid=decoded.text("parentUUID"),
        profile=profile_in_names(decoded.text("profile")) or known.profile,
        # Before 25.12.0 the driver had its own name for the address (source).
        pci_address=decoded.text("pciBusID") or decoded.text("pcieBusID"),
        shares=bool(decoded.about().allow_multiple_allocations),
    )
