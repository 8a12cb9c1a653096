"""Checks of the device files in /dev: whether they are here, and may be opened."""

import errno
import os
import queue
import re
from collections.abc import Iterable, Mapping, Sequence

from exporter.background import in_background
from exporter.node.doctor.driver import ELSEWHERE, gpus_on_bus
from exporter.node.doctor.examination import Examination
from exporter.node.doctor.finding import Check, Finding, limited, ok, skipped
from exporter.node.doctor.node_root import NodeRoot
from exporter.node.doctor.reasons import DoctorReason

_DENIED = (errno.EACCES, errno.EPERM)
"""EACCES is the mode of the file; EPERM is how the device controller of a cgroup forbids a device (cgroups(7))."""


def _files(examination: Examination) -> Iterable[Finding]:
    if not examination.config.reads_this_machine:
        return [skipped(ELSEWHERE)]
    root, works = examination.root, examination.readings is not None
    numbered = gpu_files(root)
    control = [name for name in root.names("/dev") if name == "nvidiactl"]
    gpus = len(gpus_on_bus(root))
    if not control or len(numbered) < gpus:
        found = f"{'no nvidiactl, ' if not control else ''}{len(numbered)} of {gpus} GPUs have theirs"
        return [limited(DoctorReason.DEVICE_FILES_MISSING, found, works=works)]
    # Without persistence mode the driver initializes a GPU whose file is opened, which takes it a second or more. So
    # where a source works, which has opened them, they are not opened again.
    return access_findings(opened(root, control if works else [*control, *numbered]), works=works)


def gpu_files(root: NodeRoot) -> list[str]:
    """The names of the GPUs' own device files: a container is often given those of some GPUs alone."""
    return [name for name in root.names("/dev") if re.fullmatch(r"nvidia[0-9]+", name)]


def opened(root: NodeRoot, names: Sequence[str]) -> dict[str, int]:
    """Open device files, all at once, and close them; return 0 or the number of the error by name."""
    ended: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
    for name in names:
        in_background("doctor")(lambda name=name: ended.put((name, _opened(root, f"/dev/{name}"))))  # type: ignore[misc]
    found = dict(ended.get() for _ in names)
    return {name: found[name] for name in names}


def _opened(root: NodeRoot, path: str) -> int:
    try:
        os.close(os.open(root.path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def access_findings(errors: Mapping[str, int], *, works: bool) -> list[Finding]:
    """Judge how opening each device file ended."""
    failures = [f"{name}: {os.strerror(number)}" for name, number in errors.items() if number]
    if not failures:
        return [ok(f"{', '.join(errors) if works else len(errors)} can be opened")]
    denied = any(number in _DENIED for number in errors.values())
    reason = DoctorReason.DEVICE_FILES_DENIED if denied else DoctorReason.GPUS_DOWN
    return [limited(reason, "; ".join(failures), works=works)]


CHECKS = (Check("device files", "/dev/nvidia*", _files),)
