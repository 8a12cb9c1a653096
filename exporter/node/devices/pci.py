"""Counts the NVIDIA GPUs that the kernel lists on the PCI bus (in /sys), whether a driver is loaded or not.

A GPU that failed before the driver was loaded is missing from every library. The kernel may still list it on the bus,
so this number is one lower bound of how many GPUs there should be.
"""

from pathlib import Path

DEVICES = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")
"""VGA and 3D controllers. NVSwitches are NVIDIA devices too, but bridges (0x0680)."""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def count_gpus(devices: Path = DEVICES) -> int:
    """Count the physical NVIDIA GPUs on the bus, without virtual functions. Returns 0 where the bus cannot be read."""
    try:
        found = list(devices.iterdir())
    except OSError:
        return 0
    return sum(
        _text(device / "vendor") == NVIDIA
        and _text(device / "class").startswith(DISPLAY_CLASSES)
        and not (device / "physfn").exists()  # the kernel links a virtual function to its physical one
        for device in found
    )
