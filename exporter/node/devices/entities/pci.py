"""Counts the NVIDIA GPUs that the kernel lists on the PCI bus (in /sys), whether a driver is loaded or not.

A GPU that failed before the driver was loaded is missing from every library. The kernel may still list it on the bus,
so this number is one lower bound of how many GPUs there should be.
"""

import os
from collections.abc import Iterable
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


class PciBus:
    """Counts the GPUs of the bus, and again only when the bus lists other devices: a scan opens hundreds of files."""

    def __init__(self, devices: Path = DEVICES) -> None:
        self._devices = devices
        self._listed: frozenset[str] = frozenset()
        self._gpus = 0

    def count_gpus(self) -> int:
        """Count the physical NVIDIA GPUs, without virtual functions. Returns 0 where the bus cannot be read."""
        try:
            listed = frozenset(os.listdir(self._devices))  # noqa: PTH208 - of names alone; Path makes objects
        except OSError:
            return 0
        if listed != self._listed:
            self._gpus = len(gpus(self._devices, listed))
            self._listed = listed
        return self._gpus


def gpus(devices: Path, listed: Iterable[str]) -> tuple[str, ...]:
    """Return the PCI addresses among those listed in a folder `devices` that are physical NVIDIA GPUs, sorted."""
    return tuple(sorted(name for name in listed if _is_gpu(devices / name)))


def _is_gpu(device: Path) -> bool:
    return (
        _text(device / "vendor") == NVIDIA
        and _text(device / "class").startswith(DISPLAY_CLASSES)
        and not (device / "physfn").exists()  # the kernel links a virtual function to its physical one
    )
