"""Reads small files of the node (/proc, /sys, /dev, /var/lib/kubelet) below one root folder.

In production the root is `/`; tests make a broken node as a folder.
"""

import os
from pathlib import Path

MAX_BYTES = 1 << 20


class NodeRoot:
    """The node's files. What is not there or may not be read is empty."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def path(self, absolute: str) -> Path:
        """Where an absolute path of the node is; a relative path stays as it is."""
        return self._root / absolute.lstrip("/") if absolute.startswith("/") else Path(absolute)

    def exists(self, absolute: str) -> bool:
        """Whether something is there, as far as that can be seen."""
        return os.access(self.path(absolute), os.F_OK)

    def content(self, absolute: str) -> bytes:
        """The first MiB of a file."""
        try:
            with self.path(absolute).open("rb") as file:
                return file.read(MAX_BYTES)
        except OSError:
            return b""

    def text(self, absolute: str) -> str:
        """The text of a file, without blanks around it."""
        return self.content(absolute).decode("utf-8", "replace").strip()

    def command(self, pid: int) -> tuple[str, str]:
        """The program of a process, and its whole command line, which may have secrets and is not to be shown."""
        words = self.content(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")
        return words[0] or self.text(f"/proc/{pid}/comm"), " ".join(words).strip()

    def names(self, absolute: str) -> tuple[str, ...]:
        """The sorted names in a folder."""
        try:
            return tuple(sorted(os.listdir(self.path(absolute))))  # noqa: PTH208 - names alone
        except OSError:
            return ()
