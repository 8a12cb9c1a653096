"""Finds out whether replicas of GPUs are shared by MPS: where its control daemon has its pipes."""

import stat
from pathlib import Path
from typing import Literal, get_args

from exporter.node.attribution.matching.rules import ReplicaSharing

MPS_ROOT = "/run/nvidia/mps"
"""Where NVIDIA's device plugin has a folder of each resource that MPS shares."""
PIPES = ("*/*/pipe/control", "*/pipe/control", "pipe/control", "control")
"""The control daemon's pipe: of a resource with a vendor and one without, and of a daemon that has the folder alone."""


ReplicaChoice = Literal["auto", "time-slicing", "mps"]
CHOICES = get_args(ReplicaChoice)


def replica_sharing(chosen: ReplicaChoice, root: Path) -> ReplicaSharing:
    """Return how replicas are shared: as chosen, else by MPS where a control daemon of it has its pipe below `root`."""
    if chosen != "auto":
        return chosen
    return "mps" if any(_is_pipe(path) for pattern in PIPES for path in _matches(root, pattern)) else "time-slicing"


def _matches(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def _is_pipe(path: Path) -> bool:
    """Whether it is a FIFO or a socket, whichever the version of the daemon makes."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
