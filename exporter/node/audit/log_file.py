"""The file of an audit log: lines are appended, and a full file is renamed and followed by a new one.

A process may end between any two calls: what was appended stays, a torn last line is cut off when the file is opened
again, and what the log says is read from the newest rotated file and the one in use. One process has the file locked.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from exporter.node.audit.file_operations import FileOperations
from exporter.node.audit.output import FoundLog, Opened
from exporter.node.audit.reasons import AuditLogError, AuditReason
from exporter.node.audit.replay import Replay
from exporter.node.audit.rotated import rotated_files, rotated_name

BEGINNING = b'{"event":"'
"""How every line begins, and a torn one as far as it goes."""
MAX_LINE = 1 << 20
"""The longest line that is read: many times the longest that is written."""


class AuditFile:
    """Appends lines to the file at `path`. For use by one thread."""

    def __init__(self, path: Path, max_bytes: int, max_rotated: int, operations: FileOperations | None = None) -> None:
        """A file of `max_bytes` is rotated; `max_rotated` rotated files are kept, 0 for all."""
        self._path, self._max_bytes, self._max_rotated = path, max_bytes, max_rotated
        self._operations = operations or FileOperations()
        self.name = str(path)
        self._descriptor = -1
        self._size = 0
        """How many bytes of whole lines the file has."""
        self._torn = False
        """Whether more than that is in it, of a write that failed."""

    def open(self) -> Opened:
        """Lock the file, cut a torn last line off and read what the log says."""
        self.close()
        self._descriptor = self._operations.open(self._path)
        try:
            self._lock()
            replay = Replay()
            for path in rotated_files(self._path)[-1:]:
                self._read(path, replay)
            repaired = self._repair()
            undecoded, before = replay.undecoded, replay.seq
            self._read(self._path, replay)
            if self._size and replay.undecoded > undecoded and (replay.seq == before):
                raise AuditLogError(AuditReason.UNREADABLE, f"{self._path} has other lines than those of an audit log")
            self._operations.sync_folder(self._path.parent)
        except BaseException:
            self.close()
            raise
        state = replay.state()
        found = None if state is None else FoundLog(state, replay.chain, replay.seq, replay.prev)
        return Opened(found, repaired)

    def changed(self) -> bool:
        """Whether the path leads to another file, or this one has another size than was written."""
        if self._descriptor < 0:
            return True
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        here = os.fstat(self._descriptor)
        expected = here.st_size if self._torn else self._size
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) or here.st_size != expected

    def append(self, lines: bytes) -> None:
        """Append the lines, all or nothing."""
        if self._torn:
            self._cut()
        self._torn = True
        written = 0
        try:
            while written < len(lines):
                written += self._operations.write(self._descriptor, lines[written:])
        except OSError:
            with contextlib.suppress(OSError):
                self._cut()
            raise
        self._size += written
        self._torn = False

    def sync(self) -> None:
        self._operations.sync(self._descriptor)

    def full(self) -> bool:
        return self._size >= self._max_bytes

    def rotate(self, seq: int) -> None:
        """Give the file its own name, make a new one and remove the oldest ones."""
        target = rotated_name(self._path, seq)
        if target.exists():
            raise AuditLogError(AuditReason.UNWRITABLE, f"{self._path} is not rotated: {target} is there already")
        self.sync()
        self._operations.rename(self._path, target)
        self.open()
        if self._max_rotated:
            for path in rotated_files(self._path)[: -self._max_rotated]:
                self._operations.remove(path)

    def close(self) -> None:
        """Close the file, which ends the lock."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            self._operations.close(descriptor)
        self._size, self._torn = 0, False

    def _lock(self) -> None:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            raise AuditLogError(AuditReason.UNREADABLE, f"{self._path} is not a regular file")
        try:
            self._operations.lock(self._descriptor)
        except BlockingIOError:
            raise AuditLogError(AuditReason.IN_USE, f"{self._path} is locked by another process") from None
        if self._path.stat().st_ino != os.fstat(self._descriptor).st_ino:
            raise AuditLogError(AuditReason.IN_USE, f"{self._path} was rotated by another process just now")

    def _repair(self) -> int:
        """Cut a torn last line off; returns how many bytes it had."""
        size = os.fstat(self._descriptor).st_size
        self._size = self._end_of_lines(size)
        torn = size - self._size
        if not torn:
            return 0
        # A machine that crashes can leave zeros where a line was to be.
        beginning = os.pread(self._descriptor, len(BEGINNING), self._size).strip(b"\0")
        if not self._size and not BEGINNING.startswith(beginning):
            raise AuditLogError(AuditReason.UNREADABLE, f"{self._path} is no audit log")
        self._cut()
        return torn

    def _end_of_lines(self, size: int) -> int:
        """How many bytes there are up to the last line break."""
        begin = size
        while begin:
            end, begin = begin, max(begin - MAX_LINE, 0)
            found = os.pread(self._descriptor, end - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
        return 0

    def _cut(self) -> None:
        self._operations.truncate(self._descriptor, self._size)
        self._torn = False

    def _read(self, path: Path, replay: Replay) -> None:
        for line in _lines(path):
            replay.take(line)


def _lines(path: Path) -> Iterator[bytes]:
    """The whole lines of a file; one that is too long is given in parts, which are no lines of an audit log."""
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE):
            if line.strip():
                yield line.removesuffix(b"\n")
