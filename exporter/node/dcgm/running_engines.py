"""Which DCGM engines this node already has: one that listens, or one inside another process, as far as /proc shows."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from exporter.node.dcgm.address import PORT, SOCKET

CONNECT_SECONDS = 0.5
PROC = Path("/proc")


def listening_engine(port: int = PORT, path: str = SOCKET) -> str | None:
    """Address, as `-r` takes it, of a host engine at one of its default places; None when nobody listens there."""
    if _answers(socket.AF_UNIX, path):
        return f"unix://{path}"
    if _answers(socket.AF_INET, ("127.0.0.1", port)):
        return f"127.0.0.1:{port}"
    return None


def foreign_engines(proc: Path = PROC) -> tuple[int, ...]:
    """Process ids of other engines: nv-hostengine, or a process that maps both libdcgm and NVML.

    A mere client of an engine maps libdcgm alone. Processes of other pid namespaces, and maps that may not be read,
    stay unseen.
    """
    return tuple(pid for pid in _others(proc) if _is_engine(proc / str(pid)))


def _answers(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_SECONDS)
        return probe.connect_ex(address) == 0


def _others(proc: Path) -> Iterator[int]:
    own = os.getpid()
    for entry in proc.iterdir():
        if entry.name.isdecimal() and int(entry.name) != own:
            yield int(entry.name)


def _is_engine(process: Path) -> bool:
    try:
        if (process / "comm").read_text(errors="replace").strip() == "nv-hostengine":
            return True
        maps = (process / "maps").read_text(errors="replace")
    except OSError:  # gone meanwhile, or not ours to read
        return False
    return "libdcgm.so" in maps and "libnvidia-ml.so" in maps
