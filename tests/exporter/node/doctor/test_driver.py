"""Checks of the driver, on nodes that are folders."""

import pytest

from exporter.node.doctor import driver
from exporter.node.doctor.reasons import DoctorReason
from tests.exporter.node.doctor.nodes import KERNEL, examination, finding, findings


def found(node, name, *words):
    return finding(driver, name, examination(node, *words))


def test_gpus_are_listed_by_their_addresses(node):
    node.gpus(5)
    status, reason, detail = found(node, "GPUs on the PCI bus")
    assert (status, reason) == ("ok", None)
    assert detail == "5: 0000:07:00.0, 0000:08:00.0, 0000:09:00.0, 0000:0a:00.0 and 1 more"


def test_a_node_without_a_gpu_is_a_failure_unless_a_driver_is_loaded_all_the_same(node):
    node.gpu(vendor="0x8086")
    status, reason, detail = found(node, "GPUs on the PCI bus")
    assert (status, reason, detail) == (
        "failed",
        DoctorReason.NO_GPU,
        "none of 1 devices on the PCI bus is a GPU",
    )
    node.module()
    assert found(node, "GPUs on the PCI bus")[0] == "note"


@pytest.mark.parametrize("words", [("--source", "simulated"), ("-r", "other-host:5555")])
def test_nothing_is_said_of_this_machine_where_its_gpus_are_not_read(node, words):
    node.gpu(driver="nouveau")
    for check in driver.CHECKS:
        assert finding(driver, check.name, examination(node, *words)) == ("skipped", None, driver.ELSEWHERE)


def test_each_driver_that_is_bound_is_a_finding_of_its_own(node):
    node.gpu("0000:07:00.0", "nouveau")
    node.gpu("0000:08:00.0", "nvidia")
    node.gpu("0000:09:00.0", "vfio-pci")
    node.module()
    bound = findings(driver, "bound driver", examination(node))
    assert [(str(each.status), each.reason, each.detail) for each in bound] == [
        ("failed", DoctorReason.NOUVEAU_BOUND, "nouveau on 0000:07:00.0"),
        ("ok", None, "nvidia on 0000:08:00.0"),
        ("note", DoctorReason.OTHER_DRIVER_BOUND, "vfio-pci on 0000:09:00.0"),
    ]


def test_a_node_that_gives_all_of_its_gpus_to_virtual_machines_has_none_to_read(node):
    node.gpu(driver="vfio-pci")
    assert found(node, "bound driver")[:2] == ("failed", DoctorReason.OTHER_DRIVER_BOUND)


def test_a_gpu_without_a_driver_is_a_failure_once_the_driver_is_loaded(node):
    node.gpu(driver="")
    assert found(node, "bound driver")[0] == "skipped"
    node.module()
    assert found(node, "bound driver")[:2] == ("failed", DoctorReason.GPU_UNBOUND)


def test_the_version_of_a_loaded_module_is_named(node):
    node.module("550.54.15")
    assert found(node, "kernel module") == ("ok", None, f"nvidia 550.54.15 for kernel {KERNEL}")


def test_a_module_whose_version_sys_does_not_have_has_it_in_proc(node):
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder)\n"
    node.file("/proc/driver/nvidia/version", line)
    assert driver.module_version(node.root) == "560.35.03"


SIGNED = b"module" * 10 + b"~Module signature appended~\n"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("nvidia.ko", b"module" * 10, DoctorReason.MODULE_UNSIGNED),
        ("nvidia.ko", SIGNED, DoctorReason.MODULE_KEY_UNKNOWN),
        ("nvidia.ko.zst", b"module" * 10, DoctorReason.MODULE_KEY_UNKNOWN),
    ],
)
def test_under_secure_boot_a_module_without_a_signature_is_told_from_one_whose_key_may_be_unknown(
    node, name, content, reason
):
    node.file(f"/lib/modules/{KERNEL}/updates/{name}", content)
    node.secure_boot()
    assert found(node, "kernel module")[:2] == ("failed", reason)


def test_without_secure_boot_a_module_that_is_not_loaded_is_only_that(node):
    node.module_file()
    node.file(driver.SECURE_BOOT, b"\x06\x00\x00\x00\x00")
    assert found(node, "kernel module") == (
        "failed",
        DoctorReason.MODULE_NOT_LOADED,
        f"not loaded, although kernel {KERNEL} has nvidia.ko",
    )


def test_a_module_for_another_kernel_alone_is_named(node):
    node.file(f"/lib/modules/{KERNEL}/modules.dep")
    node.module_file("6.8.0-40-generic")
    status, reason, detail = found(node, "kernel module")
    assert (status, reason) == ("failed", DoctorReason.MODULE_MISSING_FOR_KERNEL)
    assert detail == f"kernel {KERNEL} has none; 6.8.0-40-generic has one"


def test_a_node_without_any_module_has_no_driver_installed(node):
    node.file(f"/lib/modules/{KERNEL}/modules.dep")
    assert found(node, "kernel module") == ("failed", DoctorReason.MODULE_NOT_LOADED, f"kernel {KERNEL} has none")


def test_a_container_that_does_not_see_the_modules_says_so(node):
    status, reason, detail = found(node, "kernel module")
    assert (status, reason) == ("failed", DoctorReason.MODULE_NOT_LOADED)
    assert "cannot be seen from here" in detail


def test_the_module_of_the_gpu_operators_driver_container_is_found(node):
    node.file(f"/run/nvidia/driver/lib/modules/{KERNEL}/kernel/drivers/video/nvidia.ko", SIGNED)
    assert "although kernel" in found(node, "kernel module")[2]
