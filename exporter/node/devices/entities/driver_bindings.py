"""Finds out whether the driver was unbound from a GPU and bound to it again, from the links of the kernel in /sys.

At each binding the kernel makes the link `driver` of the device anew, with another inode number (sysfs, kernfs).
"""

from collections.abc import Iterable
from pathlib import Path

from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.pci import DEVICES

DriverBindings = tuple[int, ...]
"""By GPU, a number that changes when the driver is bound to it; 0 where it is not bound, or where that is not known."""


def driver_bindings(devices: Iterable[Device], folder: Path = DEVICES) -> DriverBindings:
    """Return the bindings of the GPUs among these devices, as this machine has them."""
    return tuple(_binding(folder / _address(device.pci_bus_id)) for device in devices if device.gi < 0)


def _address(pci_bus_id: str) -> str:
    """The kernel writes the PCI domain with four digits, NVIDIA's libraries with eight: `00000000:07:00.0`."""
    domain, _, rest = pci_bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _binding(device: Path) -> int:
    try:
        return (device / "driver").lstat().st_ino
    except OSError:
        return 0
