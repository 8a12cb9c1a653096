"""Finds DCGM engines that already run on the node: by the default socket and port, and by the processes in /proc.

Two engines on one node are not supported by NVIDIA and can deadlock the driver (reported, DCGM issue 108), so the
`auto` source calls this before it starts an embedded engine.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from exporter.node.dcgm.host_engine.address import PORT, SOCKET, Address
from exporter.node.dcgm.host_engine.probe import refusal

CONNECT_SECONDS = 0.5
PROC = Path("/proc")


def listening_engine(port: int = PORT, path: str = SOCKET) -> str | None:
    """Return the address, in the form that `parse_address` takes, of what listens on the default socket or port.

    It is assumed to be a host engine. None if nothing listens.
    """
    # A plain connect, not dcgmConnect_v2: that takes its whole timeout where nothing listens (4.6.0, measured).
    if refusal(Address(path, is_unix=True), CONNECT_SECONDS) is None:
        return f"unix://{path}"
    if refusal(Address(f"127.0.0.1:{port}"), CONNECT_SECONDS) is None:
        return f"127.0.0.1:{port}"
    return None


def engine_beside() -> str:
    """Say which engine seems to run on this node beside ours, for the log; empty where none is known."""
    address = listening_engine()
    if address is not None:
        return f"a host engine listens at {address}"
    return others_text(other_engines())


def others_text(pids: tuple[int, ...]) -> str:
    """Say which processes seem to have an engine, for the log; empty for none."""
    return f"these processes seem to have an engine: {', '.join(map(str, pids))}" if pids else ""


def other_engines(proc: Path = PROC) -> tuple[int, ...]:
    """Return the process ids of other engines: nv-hostengine, or a process with both libdcgm and NVML loaded.

    A client of an engine loads libdcgm alone. Processes in other pid namespaces, and those whose maps may not be read,
    are not found.
    """
    return tuple(pid for pid in _other_processes(proc) if _is_engine(proc / str(pid)))


def _other_processes(proc: Path) -> Iterator[int]:
    own = os.getpid()
    for entry in proc.iterdir():
        if entry.name.isdecimal() and int(entry.name) != own:
            yield int(entry.name)


def _is_engine(process: Path) -> bool:
    try:
        if (process / "comm").read_text(errors="replace").strip() == "nv-hostengine":
            return True
        maps = (process / "maps").read_text(errors="replace")
    except OSError:  # the process has ended, or its files may not be read
        return False
    return "libdcgm.so" in maps and "libnvidia-ml.so" in maps
