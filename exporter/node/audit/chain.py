"""Chains lines by numbers and hashes: each has its predecessor's SHA-256, so that a changed or missing line shows.

No I/O. A chain has no key: whoever can replace all lines from one on can make a chain that fits. A copy of the lines
elsewhere, or of one hash, proves that.
"""

import hashlib
import secrets
from typing import Any

import msgspec

from exporter.node.audit.lines import SCHEMA, AuditLine, encode, moment


def new_chain_id() -> str:
    """A name for a new chain, which no other has."""
    return secrets.token_hex(6)


def digest(content: bytes) -> str:
    """The hash of a line, without its line break."""
    return hashlib.sha256(content).hexdigest()


class Chain:
    """The end of a chain, to which lines are added."""

    def __init__(self, node: str, id: str, seq: int = 0, prev: str = "") -> None:
        """`seq` and `prev` are number and hash of the last line that there is."""
        self.node, self.id = node, id
        self.seq, self._prev = seq, prev
        self._added: list[AuditLine] = []

    @property
    def next(self) -> int:
        """The number of the next line."""
        return self.seq + len(self._added) + 1

    def head(self, at: float) -> dict[str, Any]:
        """What the next line has in common with every other; `at` is its time in Unix seconds."""
        return {"schema": SCHEMA, "node": self.node, "chain": self.id, "seq": self.next, "time": moment(at)}

    def add(self, line: AuditLine) -> None:
        """Add a line that was made with `head`."""
        self._added.append(line)

    def sealed(self) -> bytes:
        """The text of the lines that were added, which belong together, each with a line break."""
        lines, self._added = self._added, []
        return b"".join(self._seal(line, more=line is not lines[-1]) for line in lines)

    def _seal(self, line: AuditLine, *, more: bool) -> bytes:
        content = encode(msgspec.structs.replace(line, prev=self._prev, more=more))
        self.seq, self._prev = line.seq, digest(content)
        return content + b"\n"
