"""Ends the reader process when the driver is unbound from a GPU, so that it has no GPU open any more."""

import logging
import os

_log = logging.getLogger(__name__)

UNBOUND_STATUS = 91
"""The exit status by which the parent process knows why it ended; no other part of it and no library uses it."""


def end_process() -> None:
    """End this process at once, from any thread.

    The kernel then closes every file of it, in whichever library and whatever call hangs: a shutdown of NVML would wait
    for that call, and the embedded engine of a libdcgm before 4.5 has none but its own end.
    """
    _log.info("the driver is being unbound from a GPU: the reader process ends, which has the GPUs open")
    os._exit(UNBOUND_STATUS)
