"""The calls by which an audit log changes files: a test can make any of them fail, or end the process before it."""

import fcntl
import os
from pathlib import Path

MODE = 0o640
"""A log names pods of every namespace: it is not for every user of the node."""


class FileOperations:
    """Calls the operating system. Every method raises OSError."""

    def open(self, path: Path) -> int:
        """Open a file for reading and appending; make it where there is none. Never waits for a FIFO."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, MODE)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def lock(self, descriptor: int) -> None:
        """Lock the file against other processes. Raises BlockingIOError where another one has locked it.

        The kernel ends the lock with the process (flock(2)).
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, descriptor: int, content: bytes) -> int:
        """Write as much as fits; returns how many bytes that was."""
        return os.write(descriptor, content)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Return when the content is on the disk."""
        os.fdatasync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Return when the names of the folder are on the disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, path: Path, target: Path) -> None:
        path.rename(target)

    def remove(self, path: Path) -> None:
        path.unlink()
