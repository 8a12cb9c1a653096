"""The type `Device`: anything that a container can be given, which is a GPU or a MIG device.

Every source describes the devices of its node as a tuple of these, the inventory. A position in it identifies a device
within one collection.
"""

import msgspec


class Device(msgspec.Struct, frozen=True, array_like=True):
    """A GPU, a MIG device (gi >= 0), or a compute instance that shares its GPU instance with others (ci >= 0).

    (uuid, gi, ci) identifies a device. A MIG device that is made again with the same ids may have another profile.
    Index and minor number can change with every boot: they are for people and for paths only.
    """

    uuid: str
    """`GPU-…` of the GPU, also for a MIG device."""
    index: int
    """NVML index of the GPU."""
    pci_bus_id: str
    """`00000000:07:00.0`: an eight-digit domain, upper case."""
    minor: int
    """N of /dev/nvidiaN; -1 when unknown."""
    model: str
    """Product name of the GPU as the driver spells it."""
    gi: int = -1
    """NVML GPU instance id; -1 on a GPU."""
    ci: int = -1
    """NVML compute instance id, only where several share one GPU instance; else -1."""
    profile: str = ""
    """MIG profile such as `1g.10gb`; empty on a GPU."""
    mig_uuids: tuple[str, ...] = ()
    """The `MIG-…` UUIDs that mean this MIG device: one per compute instance inside it."""
    serial: str = ""
    architecture: str = ""
    """Lower case, such as `hopper`; empty when unknown."""
    driver_version: str = ""
    mig_enabled: bool | None = None
    """Whether the GPU is in MIG mode; None when unknown or not applicable."""
    numa_node: int = -1
    """-1 when unknown."""
