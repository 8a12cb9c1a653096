"""How many NVIDIA GPUs the kernel sees on the PCI bus, driver or no driver.

A board that fell off the bus before the driver was loaded is missing from every library; the bus is the next
best witness of what should be there.
"""

from pathlib import Path

DEVICES = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers; NVSwitches are bridges (0x0680)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def count_gpus(devices: Path = DEVICES) -> int:
    """Physical NVIDIA GPUs on the bus; virtual functions of one are not counted. 0 where the bus cannot be read."""
    try:
        found = list(devices.iterdir())
    except OSError:
        return 0
    return sum(
        _text(device / "vendor") == NVIDIA
        and _text(device / "class").startswith(DISPLAY_CLASSES)
        and not (device / "physfn").exists()
        for device in found
    )
