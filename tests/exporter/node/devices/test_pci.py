"""GPUs are counted on the PCI bus by vendor and class, with or without a driver."""

import shutil

from exporter.node.devices.entities.pci import PciBus, gpus


def device(bus, name, vendor, class_, **more):
    folder = bus / name
    folder.mkdir(parents=True)
    for file, text in {"vendor": vendor, "class": class_, **more}.items():
        (folder / file).write_text(f"{text}\n")


def test_only_nvidias_display_controllers_count_and_no_virtual_functions(tmp_path):
    device(tmp_path, "0000:01:00.0", "0x10de", "0x030200")
    device(tmp_path, "0000:02:00.0", "0x10de", "0x030000")
    device(tmp_path, "0000:03:00.0", "0x10de", "0x068000")
    device(tmp_path, "0000:04:00.0", "0x8086", "0x030000")
    device(tmp_path, "0000:05:00.0", "0x10de", "0x030200", physfn="")
    (tmp_path / "0000:06:00.0").mkdir()
    assert PciBus(tmp_path).count_gpus() == 2
    assert gpus(tmp_path, [each.name for each in tmp_path.iterdir()]) == ("0000:01:00.0", "0000:02:00.0")


def test_a_machine_without_a_pci_bus_has_no_gpus(tmp_path):
    assert PciBus(tmp_path / "missing").count_gpus() == 0


def test_the_bus_is_scanned_again_only_when_it_lists_other_devices(tmp_path):
    device(tmp_path, "0000:01:00.0", "0x10de", "0x030200")
    bus = PciBus(tmp_path)
    assert bus.count_gpus() == 1
    (tmp_path / "0000:01:00.0" / "vendor").write_text("0x8086\n")  # which no real device does: shows what is read again
    assert bus.count_gpus() == 1
    device(tmp_path, "0000:02:00.0", "0x10de", "0x030200")
    assert bus.count_gpus() == 1
    shutil.rmtree(tmp_path / "0000:02:00.0")
    assert bus.count_gpus() == 0


def test_a_bus_that_appears_later_is_counted(tmp_path):
    bus = PciBus(tmp_path / "devices")
    assert bus.count_gpus() == 0
    device(tmp_path / "devices", "0000:01:00.0", "0x10de", "0x030200")
    assert bus.count_gpus() == 1
