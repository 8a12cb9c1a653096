"""GPUs are counted on the PCI bus by vendor and class, with or without a driver."""

from exporter.node.devices.pci import count_gpus


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
    assert count_gpus(tmp_path) == 2


def test_a_machine_without_a_pci_bus_has_no_gpus(tmp_path):
    assert count_gpus(tmp_path / "missing") == 0
