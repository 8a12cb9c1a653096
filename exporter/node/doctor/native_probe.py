"""Asks one native library what it is, in a process of its own, which may hang or crash: prints a NativeLibrary as JSON.

Usage: python -m exporter.node.doctor.native_probe nvml|dcgm [LIBDCGM [BINDINGS]]
"""

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pynvml

from exporter.node.dcgm.health import bindings as health_bindings
from exporter.node.dcgm.health.bindings import BindingsError
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import DcgmLibrary, open_library
from exporter.node.doctor.examination import NativeLibrary
from exporter.node.nvml.native.values import source_error
from exporter.source import SourceError

RECORDS = {
    "c_dcgmGroupEntityPair_t": ctypes.sizeof(layout.EntityPair),
    "c_dcgmFieldValue_v1": layout.STORED_SIZE,
    "c_dcgmFieldValue_v2": layout.VALUE_SIZE,
    "c_dcgmConnectV2Params_v2": ctypes.sizeof(layout.ConnectParameters),
    "c_dcgmVersionInfo_v2": ctypes.sizeof(layout.VersionInfo),
    "c_dcgmMigHierarchy_v2": ctypes.sizeof(layout.Hierarchy),
}
"""The size that we read of records, by their names in NVIDIA's bindings (dcgm_structs.py)."""
_MAPS = Path("/proc/self/maps")


def nvml() -> NativeLibrary:
    """Load libnvidia-ml and open it."""
    reason = message = version = cuda = ""
    try:
        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
        cuda = _cuda()
    except pynvml.NVMLError as error:
        failure = source_error(error.value)
        reason, message = str(failure.reason), str(failure)
    path = _loaded_file("libnvidia-ml.so")
    beside = version_in(os.path.realpath(Path(path).with_name("libcuda.so.1"))) if path else ""
    return NativeLibrary(path, version, version_in(path), cuda, beside, reason, message)


def _cuda() -> str:
    with contextlib.suppress(pynvml.NVMLError):
        number = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())  # 12040 is 12.4 (nvml.h)
        return f"{number // 1000}.{number % 1000 // 10}"
    return ""


def dcgm(path: str, bindings: str) -> NativeLibrary:
    """Load libdcgm, and compare our records with those of NVIDIA's bindings where these are."""
    try:
        library = open_library(path or None)
    except SourceError as error:
        found = _loaded_file("libdcgm.so")
        return NativeLibrary(found, "", version_in(found), reason=str(error.reason), message=str(error))
    found = _loaded_file("libdcgm.so")
    differences, compared = _compare(library, bindings)
    return NativeLibrary(found, library.version, version_in(found), records=differences, compared=compared)


def _compare(library: DcgmLibrary, folder: str) -> tuple[str, int]:
    try:
        structs = health_bindings.load(library, folder or None).structs
    except BindingsError:
        return "", 0
    sizes = {name: ctypes.sizeof(record) for name in RECORDS if (record := getattr(structs, name, None))}
    differing = [
        f"{name} has {size} bytes, not {RECORDS[name]}" for name, size in sizes.items() if size != RECORDS[name]
    ]
    return "; ".join(differing), len(sizes)


def _loaded_file(name: str) -> str:
    """The file of a library that this process has loaded, links resolved: the loader itself reports no path."""
    found = re.search(rf"(/\S*/{re.escape(name)}\S*)$", _MAPS.read_text(errors="replace"), re.MULTILINE)
    return found[1] if found else ""


def version_in(path: str) -> str:
    """The version in `libnvidia-ml.so.550.54.15`; empty where the name has none."""
    found = re.search(r"\.so\.([0-9]+\.[0-9.]+)$", path)
    return found[1] if found else ""


def main(arguments: Sequence[str]) -> int:
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a native library may print to descriptor 1
    name, path, bindings, *_ = (*arguments, "", "", "")
    found = nvml() if name == "nvml" else dcgm(path, bindings)
    output.write(msgspec.json.encode(found))
    # Before the process ends: destructors of a native library may crash, which costs the answer nothing.
    output.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
