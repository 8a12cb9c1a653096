"""Checks of the driver: GPUs on the PCI bus, the driver bound to each, and NVIDIA's kernel module."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from exporter.node import restart_need
from exporter.node.devices.entities import pci
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, failed, limited, note, ok, skipped
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.doctor.reasons import DoctorReason

PCI = str(pci.DEVICES)
VERSION, MODULE = str(restart_need.DRIVER), "/sys/module/nvidia/version"
RELEASE = "/proc/sys/kernel/osrelease"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""Four bytes of attributes, then 1 where Secure Boot is on (UEFI specification, global variables)."""
MODULE_FOLDERS = ("/lib/modules", "/run/nvidia/driver/lib/modules")
"""Of the node itself, and of the GPU Operator's driver container."""
_SIGNED = b"~Module signature appended~\n"
"""How a signed module ends (module-signing.rst of the kernel's documentation)."""
SHOWN = 4
ELSEWHERE = "the GPUs are not those of this machine"


def gpus_on_bus(root: NodeRoot) -> tuple[str, ...]:
    """The PCI addresses of the GPUs."""
    return pci.gpus(root.path(PCI), root.names(PCI))


def module_version(root: NodeRoot) -> str:
    """The version of the kernel module that is loaded; empty where none is."""
    text = root.text(VERSION)
    found = re.search(r"\b[0-9]{3,}\.[0-9]+(\.[0-9]+)?\b", text)
    return root.text(MODULE) or (found[0] if found else "") or ("unknown version" if text else "")


def _bus(examination: Examination) -> Iterable[Finding]:
    if not examination.config.reads_this_machine:
        return [skipped(ELSEWHERE)]
    root = examination.root
    found = gpus_on_bus(root)
    if found:
        return [ok(f"{len(found)}: {named(found)}")]
    if module_version(root):
        return [note("none is listed on the PCI bus, but the driver is loaded")]
    return [failed(DoctorReason.NO_GPU, f"none of {len(root.names(PCI))} devices on the PCI bus is a GPU")]


def _bound(examination: Examination) -> Iterable[Finding]:
    root = examination.root
    found = gpus_on_bus(root) if examination.config.reads_this_machine else ()
    if not found:
        return [skipped("no GPU on the PCI bus" if examination.config.reads_this_machine else ELSEWHERE)]
    by_driver: dict[str, list[str]] = {}
    for address in found:
        by_driver.setdefault(_driver_of(root.path(f"{PCI}/{address}")), []).append(address)
    loaded = bool(module_version(root))
    return [
        _bound_finding(driver, addresses, loaded=loaded, some=len(by_driver) > 1)
        for driver, addresses in sorted(by_driver.items())
    ]


def named(texts: Sequence[str], most: int = SHOWN) -> str:
    """The first of these texts and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"


def _driver_of(device: Path) -> str:
    """The name of the driver that is bound to a device; empty where none is."""
    try:
        return (device / "driver").readlink().name
    except OSError:
        return ""


def _bound_finding(driver: str, addresses: list[str], *, loaded: bool, some: bool) -> Finding:
    detail = f"{driver or 'none'} on {named(addresses)}"
    if driver == "nvidia":
        return ok(detail)
    if driver == "nouveau":
        return failed(DoctorReason.NOUVEAU_BOUND, detail)
    if driver:
        return limited(DoctorReason.OTHER_DRIVER_BOUND, detail, works=some)
    return failed(DoctorReason.GPU_UNBOUND, detail) if loaded else skipped(f"{detail}: no driver is loaded")


def _module(examination: Examination) -> Iterable[Finding]:
    if not examination.config.reads_this_machine:
        return [skipped(ELSEWHERE)]
    version = module_version(examination.root)
    if version:
        return [ok(f"nvidia {version} for kernel {examination.root.text(RELEASE) or 'of unknown release'}")]
    return [_not_loaded(examination.root)]


def _not_loaded(root: NodeRoot) -> Finding:
    """Why the module is not loaded, as far as the files of the node show it."""
    release = root.text(RELEASE)
    secure = root.content(SECURE_BOOT)[4:5] == b"\x01"
    files = list(_module_files(root, release))
    if not _sees_modules(root):
        return failed(DoctorReason.MODULE_NOT_LOADED, "not loaded; the node's /lib/modules cannot be seen from here")
    if not files:
        others = [each for each in _releases(root) if each != release and any(_module_files(root, each))]
        detail = f"kernel {release} has none" + (f"; {', '.join(others)} has one" if others else "")
        return failed(DoctorReason.MODULE_MISSING_FOR_KERNEL if others else DoctorReason.MODULE_NOT_LOADED, detail)
    if not secure:
        return failed(DoctorReason.MODULE_NOT_LOADED, f"not loaded, although kernel {release} has {files[0].name}")
    reason = DoctorReason.MODULE_UNSIGNED if _signed(files[0]) is False else DoctorReason.MODULE_KEY_UNKNOWN
    return failed(reason, f"Secure Boot is on and {files[0].name} of kernel {release} is not loaded")


def _releases(root: NodeRoot) -> tuple[str, ...]:
    """The releases of the kernels that are installed."""
    return tuple(dict.fromkeys(name for folder in MODULE_FOLDERS for name in root.names(folder)))


def _sees_modules(root: NodeRoot) -> bool:
    """Whether modules of the running kernel can be seen: a container usually does not have the node's."""
    return root.text(RELEASE) in _releases(root)


def _module_files(root: NodeRoot, release: str) -> Iterator[Path]:
    for folder in MODULE_FOLDERS:
        if release:
            yield from sorted(root.path(f"{folder}/{release}").rglob("nvidia.ko*"))


def _signed(module: Path) -> bool | None:
    """Whether a module is signed; None where it is compressed, and so not known without unpacking it."""
    if module.suffix != ".ko":
        return None
    try:
        with module.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - len(_SIGNED), 0))
            return file.read() == _SIGNED
    except OSError:
        return None


CHECKS = (
    Check("driver", "GPUs on the PCI bus", _bus),
    Check("driver", "bound driver", _bound),
    Check("driver", "kernel module", _module),
)
