"""Builds the fake libraries with the system C compiler, once for the same sources and flags."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "fakes"
FLAGS = ("-shared", "-fPIC", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread")
DCGM_SOURCES = (
    "libdcgm_engine.c",
    "libdcgm_group.c",
    "libdcgm_watch.c",
    "libdcgm_read.c",
    "libdcgm_sample.c",
    "libdcgm_listening.c",
    "libdcgm_device.c",
    "libdcgm_link.c",
    "libdcgm_component.c",
    "libdcgm_about.c",
    "libdcgm_p2p.c",
    "libdcgm_health.c",
    "libdcgm_other_clients.c",
    "open_gpus.c",
    "table_reader.c",
)
NVML_SOURCES = (
    "libnvidia_ml_session.c",
    "libnvidia_ml_system.c",
    "libnvidia_ml_table.c",
    "libnvidia_ml_gpu.c",
    "libnvidia_ml_mig.c",
    "libnvidia_ml_memory.c",
    "libnvidia_ml_value.c",
    "libnvidia_ml_clock.c",
    "libnvidia_ml_error.c",
    "libnvidia_ml_link.c",
    "libnvidia_ml_prm.c",
    "libnvidia_ml_vgpu.c",
    "libnvidia_ml_field_values.c",
    "libnvidia_ml_fabric.c",
    "libnvidia_ml_p2p.c",
    "libnvidia_ml_processes.c",
    "libnvidia_ml_gpm.c",
    "libnvidia_ml_events.c",
    "libnvidia_ml_system_events.c",
    "open_gpus.c",
    "table_reader.c",
)


@dataclass(frozen=True)
class FakeLibrary:
    """What a fake library is built from."""

    soname: str
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()


LIBRARIES = (
    FakeLibrary("libdcgm.so.4", DCGM_SOURCES, ("-DDCGM_MAJOR=4", "-fvisibility=hidden")),
    FakeLibrary("libdcgm.so.3", DCGM_SOURCES, ("-DDCGM_MAJOR=3", "-fvisibility=hidden")),
    FakeLibrary("libnvidia-ml.so.1", NVML_SOURCES, ("-lm",)),
)
OLD_NVML = FakeLibrary("libnvidia-ml.so.1", NVML_SOURCES, ("-DOLD_DRIVER", "-lm"))
"""The NVML of an old driver, without the functions that were added later."""

CUDA = FakeLibrary("libcuda.so.1", ("libcuda.c",), ("-fvisibility=hidden",))
"""The library of CUDA's driver, for the loads of tests/gpu."""


def build(directory: Path, *, only: str = "") -> dict[str, Path]:
    """Put the libraries whose soname begins with `only` into that directory, and return their paths by soname."""
    directory.mkdir(parents=True, exist_ok=True)
    built = {}
    for library in LIBRARIES:
        if library.soname.startswith(only):
            built[library.soname] = put(library, directory)
    return built


def put(library: FakeLibrary, directory: Path) -> Path:
    """Put a library into that directory, and return its path."""
    target = directory / library.soname
    shutil.copy(_compiled(library), target)
    return target


def _compiled(library: FakeLibrary) -> Path:
    cached = CACHE / f"{_hash(library)}-{library.soname}"
    if not cached.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        # Tests run in several processes at once: each compiles a file of its own and renames it.
        draft = cached.with_name(f"{cached.name}.{os.getpid()}")
        sources = [str(HERE / name) for name in library.sources]
        libraries = [flag for flag in library.flags if flag.startswith("-l")]
        flags = [flag for flag in library.flags if flag not in libraries]
        soname = f"-Wl,-soname,{library.soname}"
        command = ["cc", *FLAGS, *flags, soname, "-o", str(draft), *sources, *libraries]
        subprocess.run(command, check=True)
        draft.replace(cached)
    return cached


def _hash(library: FakeLibrary) -> str:
    """Return a hash of everything that the compiled file depends on."""
    digest = hashlib.sha256(repr((FLAGS, library)).encode())
    for name in (*library.sources, *sorted(path.name for path in HERE.glob("*.h"))):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:16]
