"""Reads and writes one state file: bounded, and never a half-written one.

A new content is written to a file beside it, brought to the disk and then given the name of the old one. The exporter
and `gpugauge forget` may write the same file: whoever writes has its folder locked meanwhile, and writes only what was
made from the content that is there.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from exporter import regular_file
from exporter.node.state_file.content import RememberedNode, decode, encode
from exporter.node.state_file.reasons import StateFileError, StateFileReason
from exporter.regular_file import UnreadableFileError

MAX_BYTES = 4 << 20
"""The largest state file: some twenty times that of a node with 16 GPUs of seven MIG devices each."""


class StateFile:
    """A state file and what it was like when it was read or written here last. For use by one thread at a time."""

    def __init__(self, path: Path, *, simulated: bool | None = None) -> None:
        """`simulated` is whether the GPUs must be those of a scenario; None where they may be any."""
        self.path = path
        self._simulated = simulated
        self._seen: tuple[int, ...] = ()

    def changed(self) -> bool:
        """Whether the file differs from the one that was read or written here last, or has appeared or gone."""
        return regular_file.signature(self.path) != self._seen

    def read(self) -> RememberedNode | None:
        """Read the file; None where there is none. Raises StateFileError `unreadable`."""
        # Taken before the file is read: a change during the reading is seen as one.
        self._seen = regular_file.signature(self.path)
        try:
            return self._checked(decode(regular_file.read(self.path, MAX_BYTES)))
        except UnreadableFileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise StateFileError(StateFileReason.UNREADABLE, f"{self.path} cannot be read: {error}") from None
        except StateFileError as error:
            raise StateFileError(error.reason, f"{self.path} cannot be used: {error}") from None

    def write(self, state: RememberedNode) -> bool:
        """Replace the content, unless somebody else has changed it: then return False, and read it first.

        Returns when the content is on the disk. Raises StateFileError `unwritable`.
        """
        content = encode(state)
        if len(content) > MAX_BYTES:
            message = f"{self.path} is not written: {len(content)} bytes are more than {MAX_BYTES}"
            raise StateFileError(StateFileReason.UNWRITABLE, message)
        target = Path(os.path.realpath(self.path))  # a link stays one
        try:
            with _locked(target.parent) as folder:
                if self.changed():
                    return False
                _replace(target, content)
                os.fsync(folder)  # the new name is a change of the folder
                self._seen = regular_file.signature(self.path)
        except OSError as error:
            message = f"{self.path} cannot be written: {error.strerror or error}"
            raise StateFileError(StateFileReason.UNWRITABLE, message) from error
        return True

    def _checked(self, state: RememberedNode) -> RememberedNode:
        if self._simulated is None or state.simulated == self._simulated:
            return state
        found, wanted = ("simulated", "real") if state.simulated else ("real", "simulated")
        raise StateFileError(StateFileReason.UNREADABLE, f"it has {found} GPUs, and {wanted} ones are read here")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Lock a folder against others that do the same, and give its descriptor. Raises OSError.

    The kernel ends the lock with the descriptor, and so with the process (flock(2)); a lock file would stay.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _replace(target: Path, content: bytes) -> None:
    new = target.with_name(f".{target.name}.new")
    new.unlink(missing_ok=True)  # of a process that was killed while it wrote
    try:
        with new.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # before the rename: else a power failure can leave the name with no content
        new.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
