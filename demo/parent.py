"""Ends a process with its parent process. `parent.py PID COMMAND…`, run by PID, executes the command in that way.

The kernel sends the signal (PR_SET_PDEATHSIG, prctl(2)), also when the parent process was killed. A pipe from the
parent process would do only for programs that watch it, and Prometheus and Alertmanager do not. The setting outlives
the execution of another program, so a process that does nothing else makes it; `preexec_fn` may deadlock in a process
with threads, which the demo has.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>."""


def end_with_parent(parent: int) -> None:
    """Have this process sent SIGTERM when its parent process `parent` ends, or only the thread that started this one.

    When that has ended already, the signal comes at once. Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def ends_with_this_process(command: Sequence[str]) -> list[str]:
    """Make the command that executes this one as a child process, which then ends with the present process."""
    # -I and -S: nothing but the standard library is needed, so that the detour takes some 20 ms.
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - the demo's own command
