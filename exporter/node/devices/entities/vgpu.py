"""The type `Vgpu`: a virtual GPU that the driver of a hypervisor has made on a GPU for one virtual machine.

It has fields of its own. A position in `Readings.vgpus` identifies a vGPU within one collection.
"""

import msgspec


class Vgpu(msgspec.Struct, frozen=True, array_like=True):
    """A vGPU, as the host of the virtual machine has it. A virtual machine itself sees a GPU."""

    gpu: int
    """Position of its GPU in the inventory."""
    number: int
    """The driver's number of it on this node, for as long as it exists."""
    uuid: str = ""
    """Empty where it cannot be read."""
