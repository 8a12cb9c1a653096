"""Reads of the processes in a folder like /proc what says where each runs. Every read is bounded.

The names of files and the numbers of fields are those of proc(5).
"""

import enum
from collections.abc import Collection
from pathlib import Path

from exporter.node.devices.readings.processes import ProcessReason
from exporter.node.processes.cgroup import ContainerPlace, UnclearCgroupError, container_of
from exporter.source import SourceError

HOST_NAMESPACE = "pid:[4026531836]"
"""The first PID namespace of a machine has this number on every Linux (PROC_PID_INIT_INO, linux/proc_ns.h)."""
LIMIT_BYTES = 64 << 10
START_TIME = 22
"""The field of `stat`, counted from 1, with the time at which a process started: not the same for two with one PID."""
_AFTER_NAME = 3
"""The first field behind the name, which is in parentheses and can contain anything."""


class NoContainer(enum.Enum):
    """Why a process has no container."""

    HOST = enum.auto()
    """It runs in no pod."""
    ENDED = enum.auto()
    UNREADABLE = enum.auto()


Place = ContainerPlace | NoContainer


class ProcFolder:
    """Finds where processes run, and keeps that as long as they live. For use by one thread."""

    def __init__(self, root: Path | None = None, own: Path = Path("/proc")) -> None:
        """`root` has the processes by the PIDs that NVML gives; None for the exporter's own, if that is the node's.

        A `root` that is named is the node's: where the node itself is a container, nothing here could tell.
        """
        self._root, self._own, self._is_named = root or own, own, root is not None
        self._known: dict[int, tuple[str, Place]] = {}
        """By PID: when the process started, and where it runs."""

    def check(self) -> None:
        """Raise SourceError unless every process of the node can be seen here."""
        if not self._is_named and self._namespace() != HOST_NAMESPACE:
            message = "the exporter is not in the PID namespace of the node (hostPID: true)"
            raise SourceError(ProcessReason.PROCESSES_NOT_VISIBLE, message)
        try:
            self._read(1, "cgroup")  # of init, which always runs, and as another user
        except OSError as error:
            message = f"{self._root}: the control group of process 1 cannot be read: {error.strerror}"
            raise SourceError(ProcessReason.PROC_UNREADABLE, message) from None

    def shows_every_process(self) -> bool:
        """Whether NVML lists every process of the node, so that one that is not listed does not run."""
        return not self._is_named or self._shows_own_namespace()

    def places(self, pids: Collection[int]) -> dict[int, Place]:
        """Return where each process runs; what is known of others is forgotten."""
        self._known = {pid: known for pid, known in self._known.items() if pid in pids}
        own = self.shows_every_process()
        foreign = (pid for pid in pids if own or not (self._own / str(pid)).exists())
        return dict.fromkeys(pids, NoContainer.ENDED) | {pid: self._place(pid) for pid in foreign}

    def _shows_own_namespace(self) -> bool:
        """Whether the PIDs in the folder are those of the exporter's own namespace, by which NVML lists processes.

        If not, NVML lists few processes or none; of those, one with a PID of the exporter's own namespace is not looked
        up in the folder, where that PID is another process.
        """
        try:
            return (self._root / "self").readlink() == (self._own / "self").readlink()
        except OSError:
            return False

    def _place(self, pid: int) -> Place:
        try:
            started = self._started(pid)
            known = self._known.get(pid)
            if known is not None and known[0] == started:
                return known[1]
            place = container_of(self._read(pid, "cgroup")) or NoContainer.HOST
            if self._started(pid) != started:  # another process has the PID by now: NVML meant one that has ended
                return NoContainer.ENDED
        except (FileNotFoundError, ProcessLookupError):
            return NoContainer.ENDED
        except (OSError, UnclearCgroupError, ValueError):
            return NoContainer.UNREADABLE
        self._known[pid] = started, place
        return place

    def _started(self, pid: int) -> str:
        """Raises ValueError when `stat` has another form."""
        fields = self._read(pid, "stat").rpartition(")")[2].split()
        if len(fields) <= START_TIME - _AFTER_NAME:
            raise ValueError("stat has too few fields")
        return fields[START_TIME - _AFTER_NAME]

    def _read(self, pid: int, name: str) -> str:
        with (self._root / str(pid) / name).open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
        if len(content) > LIMIT_BYTES:
            raise ValueError(f"{name} has more than {LIMIT_BYTES} bytes")
        return content.decode("utf-8", "replace")

    def _namespace(self) -> str:
        try:
            return str((self._own / "self" / "ns" / "pid").readlink())
        except OSError:
            return ""
