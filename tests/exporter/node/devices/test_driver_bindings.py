"""Whether the driver was bound to a GPU again, by the links in /sys."""

import pytest

from exporter.node.devices.entities.device import Device
from exporter.node.devices.entities.driver_bindings import driver_bindings

GPUS = tuple(Device(f"GPU-{n}", n, f"0000000{n}:0A:00.{n}", n, "NVIDIA H100") for n in range(2))
MIG_DEVICE = Device("GPU-0", 0, "00000000:0A:00.0", 0, "NVIDIA H100", gi=1, profile="1g.10gb")


@pytest.fixture
def bus(tmp_path):
    """A folder as /sys/bus/pci/devices, with both GPUs bound to the driver."""
    (tmp_path / "nvidia").mkdir()
    for n in range(2):
        device = tmp_path / f"000{n}:0a:00.{n}"
        device.mkdir()
        (device / "driver").symlink_to(tmp_path / "nvidia")
    return tmp_path


def test_a_binding_stays_the_same_until_the_link_is_made_anew(bus):
    first = driver_bindings(GPUS, bus)
    assert first == driver_bindings(GPUS, bus)
    assert 0 not in first
    link = bus / "0001:0a:00.1" / "driver"
    link.rename(bus / "kept")  # so that its inode number is not given to the new link
    assert driver_bindings(GPUS, bus) == (first[0], 0)
    link.symlink_to(bus / "nvidia")
    again = driver_bindings(GPUS, bus)
    assert again[0] == first[0]
    assert again[1] not in {0, first[1]}


def test_mig_devices_have_no_binding_and_where_there_is_no_bus_nothing_changes(tmp_path):
    assert driver_bindings((GPUS[0], MIG_DEVICE), tmp_path / "none") == (0,)
