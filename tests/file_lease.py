"""A file that cannot be opened for a moment, as on a file system with a fault, while nothing about it changes."""

import contextlib
import fcntl
import os
import signal


@contextlib.contextmanager
def unreadable(path):
    """Until the end of the block, opening the file without blocking fails with EWOULDBLOCK (open(2), fcntl(2): leases).

    For the main thread. The kernel announces with SIGIO that somebody wants to open the file; nothing is to be done.
    """
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    owner = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.fcntl(owner, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(owner)
        signal.signal(signal.SIGIO, before)
