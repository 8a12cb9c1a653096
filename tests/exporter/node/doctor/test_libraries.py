"""Checks of device files, libraries and privileges, from what was found of them."""

import errno

import msgspec
import pytest

from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.node.doctor import device_files, libraries, privileges
from exporter.node.doctor.examination import NativeLibrary
from exporter.node.doctor.native_probe import version_in
from exporter.node.doctor.reasons import DoctorReason
from exporter.node.nvml.native.reasons import NvmlReason
from tests.exporter.node.doctor.nodes import examination, finding, gpu, read

LIBRARY = NativeLibrary("/lib/libnvidia-ml.so.550.54.15", "550.54.15", "550.54.15", "12.4")
DEV = "/dev/nvidia*"


def test_device_files_that_can_be_opened_are_counted(node):
    node.gpus(2)
    node.file("/dev/nvidiactl")
    assert finding(device_files, DEV, examination(node)) == ("ok", None, "3 can be opened")
    read_already = examination(node, attempts=(read(gpu()),))
    assert finding(device_files, DEV, read_already) == ("ok", None, "nvidiactl can be opened")


@pytest.mark.parametrize(("attempts", "status"), [((), "failed"), ((read(gpu()),), "note")])
def test_missing_device_files_are_a_failure_only_where_no_source_works(node, attempts, status):
    node.gpus(2)
    (node.folder / "dev/nvidia1").unlink()
    found = finding(device_files, DEV, examination(node, attempts=attempts))
    assert found == (status, DoctorReason.DEVICE_FILES_MISSING, "no nvidiactl, 1 of 2 GPUs have theirs")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_device_that_a_mode_or_a_cgroup_forbids_is_denied(number):
    (found,) = device_files.access_findings({"nvidiactl": 0, "nvidia0": number}, works=False)
    assert (str(found.status), found.reason) == ("failed", DoctorReason.DEVICE_FILES_DENIED)
    assert found.detail.startswith("nvidia0: ")


def test_a_device_that_fails_otherwise_is_a_gpu_that_is_down(node):
    (found,) = device_files.access_findings({"nvidiactl": 0, "nvidia0": errno.EIO}, works=False)
    assert found.reason is DoctorReason.GPUS_DOWN
    assert device_files.opened(node.root, ["nvidia9"]) == {"nvidia9": errno.ENOENT}


def test_the_files_and_versions_of_the_libraries_are_named(node):
    dcgm = NativeLibrary("/lib/libdcgm.so.4.2.3", "4.2.3", "4.2.3", compared=5)
    examined = examination(node, nvml=LIBRARY, dcgm=dcgm)
    assert finding(libraries, "libnvidia-ml", examined)[2] == "550.54.15, /lib/libnvidia-ml.so.550.54.15"
    assert finding(libraries, "CUDA", examined)[2] == "the driver supports CUDA up to 12.4"
    assert finding(libraries, "libdcgm", examined)[2] == "4.2.3, /lib/libdcgm.so.4.2.3"
    assert finding(libraries, "record sizes", examined)[:2] == ("ok", None)


def test_two_driver_versions_are_a_failure_although_a_source_works(node):
    node.module("570.133.20")
    status, reason, detail = finding(
        libraries, "driver versions", examination(node, nvml=LIBRARY, attempts=(read(gpu()),))
    )
    assert (status, reason) == ("failed", DoctorReason.DRIVER_VERSIONS_DIFFER)
    assert detail == "the kernel module is 570.133.20, /lib/libnvidia-ml.so.550.54.15 is 550.54.15"


def test_a_libcuda_of_another_version_is_one_of_two_driver_versions(node):
    node.module("550.54.15")
    library = msgspec.structs.replace(LIBRARY, cuda_library="535.129.03")
    status, reason, detail = finding(libraries, "driver versions", examination(node, nvml=library))
    assert (status, reason) == ("failed", DoctorReason.DRIVER_VERSIONS_DIFFER)
    assert detail.endswith("/lib/libnvidia-ml.so.550.54.15 is 550.54.15, libcuda beside it is 535.129.03")


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/lib/libcuda.so.550.54.15", "550.54.15"),
        ("/lib/libcuda.so.1", ""),
        ("/lib/libdcgm.so.4.2.3", "4.2.3"),
        ("", ""),
    ],
)
def test_the_name_of_a_library_has_its_version_where_it_is_more_than_the_interface(path, version):
    assert version_in(path) == version


def test_one_driver_version_is_fine_and_one_that_is_not_known_is_not_compared(node):
    node.module("550.54.15")
    assert finding(libraries, "driver versions", examination(node, nvml=LIBRARY))[0] == "ok"
    unknown = NativeLibrary("/lib/libnvidia-ml.so.1")
    assert finding(libraries, "driver versions", examination(node, nvml=unknown))[0] == "skipped"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("library_missing", NvmlReason.LIBRARY_MISSING),
        ("driver_not_loaded", NvmlReason.DRIVER_NOT_LOADED),
        ("check_timed_out", DoctorReason.CHECK_TIMED_OUT),
        ("nonsense", DoctorReason.CHECK_FAILED),
    ],
)
def test_a_library_that_cannot_be_used_has_the_reason_of_its_source(node, text, reason):
    library = NativeLibrary(reason=text, message="why")
    assert finding(libraries, "libnvidia-ml", examination(node, nvml=library)) == ("failed", reason, "why")
    assert finding(libraries, "CUDA", examination(node, nvml=library))[0] == "skipped"


def test_a_missing_libdcgm_is_a_note_where_another_source_works(node):
    missing = NativeLibrary(reason="library_missing", message="why")
    examined = examination(node, dcgm=missing, attempts=(read(gpu()),))
    assert finding(libraries, "libdcgm", examined) == ("note", DcgmReason.LIBRARY_MISSING, "why")
    assert finding(libraries, "record sizes", examined)[0] == "skipped"


def test_records_of_other_sizes_are_a_failure(node):
    library = NativeLibrary(
        "/lib/libdcgm.so.4", "4.9.0", records="c_dcgmFieldValue_v2 has 8 bytes, not 4128", compared=5
    )
    assert finding(libraries, "record sizes", examination(node, dcgm=library)) == (
        "failed",
        DoctorReason.RECORD_SIZES_DIFFER,
        "c_dcgmFieldValue_v2 has 8 bytes, not 4128",
    )


@pytest.mark.parametrize(("words", "name"), [(("--source", "nvml"), "libdcgm"), (("-r", "elsewhere:5555"), "CUDA")])
def test_a_library_that_the_configuration_does_not_use_is_skipped(node, words, name):
    assert finding(libraries, name, examination(node, *words))[0] == "skipped"


def status_of(uid, capabilities):
    return f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities}\n"


def test_another_user_than_root_is_a_note(node):
    assert finding(privileges, "user", examination(node)) == ("ok", None, "user 0")
    node.file(privileges.STATUS, status_of(65532, "0000000000000000"))
    assert finding(privileges, "user", examination(node)) == ("note", DoctorReason.NOT_ROOT, "user 65532")


def test_sys_admin_is_asked_for_only_where_an_engine_would_be_embedded(node):
    assert finding(privileges, "profiling", examination(node))[0] == "ok"
    node.file(privileges.STATUS, status_of(0, "00000000a80425fb"))
    embedded = examination(node, attempts=(read(gpu(), candidate="embedded engine"),))
    assert finding(privileges, "profiling", embedded)[:2] == ("note", DoctorReason.SYS_ADMIN_MISSING)
    through_nvml = examination(node, attempts=(read(gpu()),))
    assert finding(privileges, "profiling", through_nvml)[0] == "skipped"


def test_a_process_that_cannot_read_its_own_state_says_nothing_of_it(node):
    node.file(privileges.STATUS, "")
    for check in privileges.CHECKS:
        assert finding(privileges, check.name, examination(node))[0] == "skipped"
