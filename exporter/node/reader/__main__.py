"""Entry point of the reader process, `python -m exporter.node.reader [FORMAT LEVEL]`, which loads the native libraries.

FORMAT and LEVEL are those of its log, which goes to stderr, as the parent process's does.

The parent process, the exporter, writes requests to stdin and reads replies, with the devices and their samples, from
stdout. The reader process ends when the parent process closes its end of a pipe or dies, even while a call into a
native library hangs.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Sequence

from exporter import log
from exporter.node.reader.serve import serve

GRACE_SECONDS = 1.0
"""How long a source may take to disconnect from its engine after the parent process has closed the pipe."""

# The parent process ends this one by closing the pipe, so that the source can disconnect first. SIGINT and SIGTERM
# may come here too: from a terminal, or from systemd, which signals every process of a unit.
# SIGPIPE: a write to a closed pipe or socket then fails with EPIPE (BrokenPipeError) instead of ending the process.
# The setting covers the threads of native libraries, which write to the host engine's socket.
IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)


def _move_pipes() -> tuple[int, int]:
    """Move both pipes away from descriptors 0 and 1; return their new descriptors.

    A native library may print to descriptor 1, which would corrupt the frames: that goes to the log on stderr.
    """
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _exit_after_parent(requests: int, done: threading.Event) -> None:
    """Wait until the other end of the pipe is closed; then end the process unless `done` is set in time.

    Runs in a thread of its own, because the main thread may be inside a native call that never returns.
    PR_SET_PDEATHSIG is no alternative: the kernel sends that signal when the thread that started this process ends
    (prctl(2)), while its process goes on.
    """
    hangup = select.poll()
    hangup.register(requests, 0)  # POLLHUP is reported without being asked for (poll(2)); requests do not wake it
    hangup.poll()
    if not done.wait(GRACE_SECONDS):
        os._exit(1)  # sys.exit would end this thread alone


def _set_up_log(arguments: Sequence[str]) -> None:
    chosen, level = arguments or ("text", "info")
    log.setup(sys.stderr, "json" if chosen == "json" else "text", level)


def main() -> int:
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _set_up_log(sys.argv[1:])
    requests, replies = _move_pipes()
    done = threading.Event()
    threading.Thread(target=_exit_after_parent, args=(requests, done), daemon=True).start()
    try:
        serve(requests, replies)
    except BrokenPipeError:
        return 1
    finally:
        done.set()
    return 0


if __name__ == "__main__":
    sys.exit(main())
