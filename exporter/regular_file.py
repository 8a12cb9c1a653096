"""Reads a small configuration file in bounded time and memory, whatever its path names."""

import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
)


class UnreadableFileError(Exception):
    """The file cannot be read. The text is the reason on one line, without the path."""


def read(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; links are followed. Raises UnreadableFileError."""
    try:
        _check_kind(path.stat().st_mode)  # before it is opened: to open some devices has an effect
        # Not blocking, because the path may name a FIFO by now.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check_kind(os.fstat(file.fileno()).st_mode)
            content = file.read(limit + 1)
    except OSError as error:
        raise UnreadableFileError(error.strerror or str(error)) from error
    if len(content) > limit:
        raise UnreadableFileError(f"it has more than {limit} bytes")
    return content


def signature(path: Path) -> tuple[int, ...]:
    """Numbers that change when the file changes or the path leads to another one, through whatever links.

    Never raises: a path that leads to no file has the number of the error.
    """
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _check_kind(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "special file")
        raise UnreadableFileError(f"it is a {kind}, not a regular file")
