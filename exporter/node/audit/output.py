"""Where the lines of an audit log go: a file, or standard output, which cannot be read back."""

import os
from typing import NamedTuple, Protocol

from exporter.node.audit.file_operations import FileOperations
from exporter.node.audit.ledger import LedgerState


class FoundLog(NamedTuple):
    """What an output already has, when it is opened."""

    state: LedgerState
    chain: str
    seq: int
    prev: str


class Opened(NamedTuple):
    """An output that was opened."""

    found: FoundLog | None
    """None where there is no line."""
    repaired: int = 0
    """How many bytes of a torn last line were cut off."""


class AuditOutput(Protocol):
    """Takes whole lines. Methods raise OSError or AuditLogError; then the same lines are to be given again."""

    name: str
    """For messages."""

    def open(self) -> Opened:
        """Begin, or begin again; read what is there."""
        ...

    def changed(self) -> bool:
        """Whether somebody else has moved or changed what was written; then it is to be opened again."""
        ...

    def append(self, lines: bytes) -> None: ...

    def sync(self) -> None:
        """Return when everything is on the disk."""
        ...

    def full(self) -> bool:
        """Whether to rotate."""
        ...

    def rotate(self, seq: int) -> None:
        """Begin a new file; `seq` is the number of the last line."""
        ...

    def close(self) -> None: ...


class AuditStream:
    """Standard output, for a log shipper. Every process begins a chain of its own there."""

    name = "standard output"

    def __init__(self, descriptor: int, operations: FileOperations | None = None) -> None:
        self._descriptor = descriptor
        self._operations = operations or FileOperations()
        self._sent = 0
        """How many bytes of the lines that failed had been taken: a line must not come twice in part."""

    def open(self) -> Opened:
        """Nothing can be read back. A line of which only a part was written ends here, and is none."""
        if self._sent:
            self._operations.write(self._descriptor, b"\n")
            self._sent = 0
        return Opened(None)

    def changed(self) -> bool:
        return False

    def append(self, lines: bytes) -> None:
        """Write the lines, as far as they were not written by an attempt that failed."""
        while self._sent < len(lines):
            self._sent += self._operations.write(self._descriptor, lines[self._sent :])
        self._sent = 0

    def sync(self) -> None:
        """Nothing: what happens to it is up to who reads it."""

    def full(self) -> bool:
        return False

    def rotate(self, seq: int) -> None:
        """Never: it is never full."""

    def close(self) -> None:
        """Nothing: it is not ours."""


def standard_output() -> int:
    """Take the descriptor of standard output for the audit log alone: what else is printed goes to standard error."""
    taken = os.dup(1)
    os.dup2(2, 1)
    return taken
