"""The reader child: `python -m exporter.node.reader`, started by its parent with a pipe on each side.

It ends when the parent closes its end or dies, whatever a native library is doing at that moment. Ctrl-C and
SIGTERM are the parent's business: it closes the pipe when it is time.
"""

import logging
import os
import select
import signal
import sys
import threading

from exporter.node.reader.serve import serve

GRACE = 1.0
"""Seconds a source may take to say goodbye to its engine after the parent has gone."""


def _claim_pipes() -> tuple[int, int]:
    """Moves both pipes away from descriptors 0 and 1, so that what a native library prints cannot mix with answers."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _leave_with_parent(requests: int, done: threading.Event) -> None:
    """Ends the process when the other end of the pipe is gone and the main thread does not come back in time.

    Not left to PR_SET_PDEATHSIG: that fires when the thread that started us ends, which need not be the process.
    """
    waiting = select.poll()
    waiting.register(requests, 0)  # a hang-up is reported without being asked for
    waiting.poll()
    if not done.wait(GRACE):
        os._exit(1)


def main() -> int:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="reader: %(levelname)s %(message)s")
    requests, answers = _claim_pipes()
    done = threading.Event()
    threading.Thread(target=_leave_with_parent, args=(requests, done), daemon=True).start()
    try:
        serve(requests, answers)
    except BrokenPipeError:
        return 1
    finally:
        done.set()
    return 0


if __name__ == "__main__":
    sys.exit(main())
