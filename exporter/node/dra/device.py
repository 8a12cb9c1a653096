"""The type `DraDevice`, and what the name alone of a device of NVIDIA's DRA driver shows of it. No I/O, no state.

Names, in every release of the driver from 25.3.0 to 0.5.0 (source): `gpu-<minor>` is the whole GPU of that device file,
never an index. A MIG device is `gpu-<minor>-mig-<profile>-<profile id>-<first memory slice>` since 25.12.0, and before
that `gpu-<minor>-mig-<profile id>-<first memory slice>-<memory slices>`. `gpu-vfio-<n>` is the n-th GPU of the PCI bus,
passed through to a virtual machine.
"""

import re
from dataclasses import dataclass
from typing import Literal

DraType = Literal["gpu", "mig", "vfio", ""]
"""What a device is, as the driver's attribute `type` has it; empty where that is not known."""

_NUMBER = "([0-9]{1,9})"
_GPU = re.compile(rf"gpu-{_NUMBER}")
_MIG = re.compile(rf"gpu-{_NUMBER}-mig-([a-z0-9-]*[a-z][a-z0-9-]*)-{_NUMBER}-{_NUMBER}")
_MIG_BY_PROFILE_ID = re.compile(rf"gpu-{_NUMBER}-mig-{_NUMBER}-{_NUMBER}-{_NUMBER}")
_VFIO = re.compile(rf"gpu-vfio-{_NUMBER}")
_COMPUTE_PREFIX = re.compile(r"^[0-9]+c(?=[0-9])")
"""What a compute instance that is smaller than its GPU instance has before the profile of that one."""
_NOT_IN_NAME = re.compile(r"[^a-z0-9-]")


@dataclass(frozen=True, slots=True)
class DraDevice:
    """What is known of a device that can be claimed. Of a MIG device, some of it is about its GPU."""

    type: DraType = ""
    minor: int = -1
    """N of /dev/nvidiaN of the GPU; -1 when unknown."""
    uuid: str = ""
    """`GPU-…` or `MIG-…`. A MIG device that the driver makes only for a claim has none in its ResourceSlice."""
    parent_uuid: str = ""
    """`GPU-…` of a MIG device's GPU."""
    profile: str = ""
    """MIG profile, spelled as in the names of devices."""
    start: int = -1
    """The first memory slice of a MIG device; -1 when unknown."""
    pci_address: str = ""
    """`0000:07:00.0`."""
    shares: bool = False
    """Whether each claim gets a share of it, so that no claim has it alone."""


def named(name: str) -> DraDevice:
    """What the name of a device shows. Never fails: nothing is known of a name of another spelling."""
    if match := _GPU.fullmatch(name):
        return DraDevice("gpu", int(match[1]))
    if match := _MIG.fullmatch(name):
        return DraDevice("mig", int(match[1]), profile=match[2], start=int(match[4]))
    if match := _MIG_BY_PROFILE_ID.fullmatch(name):
        return DraDevice("mig", int(match[1]), start=int(match[3]))
    return DraDevice("vfio") if _VFIO.fullmatch(name) else DraDevice()


def profile_in_names(profile: str) -> str:
    """Spell a MIG profile as the names of devices do: `1g10gb-me` for `1g.10gb+me`."""
    return _NOT_IN_NAME.sub("-", profile.lower().replace(".", "")).strip("-")


def same_profile(profile: str, claimed: str) -> bool:
    """Whether a GPU instance of this profile is of the one in a device's name, which may be of a part of it."""
    return bool(profile) and profile_in_names(profile) == _COMPUTE_PREFIX.sub("", claimed)


def may_be_profile(profile: str, claimed: str) -> bool:
    """Whether it may be: one of the two is not known, or only their memory differs, which sources round differently."""
    return not profile or not claimed or _slices(profile_in_names(profile)) == _slices(claimed)


def _slices(profile: str) -> str:
    return _COMPUTE_PREFIX.sub("", profile).partition("g")[0]
