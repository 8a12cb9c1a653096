"""Ends the reader process when the driver is unbound from a GPU, so that it has no GPU open any more."""

import logging
import os
from collections.abc import Sequence

import msgspec

from exporter.node.devices.readings.readings import XidReport
from exporter.node.reader.protocol import ENDING, ReaderReply, ReplyPipe

_log = logging.getLogger(__name__)

UNBOUND_STATUS = 91
"""The exit status by which the parent process knows why it ended; no other part of it and no library uses it."""
MAX_REPORTS = 500
"""How many XID reports are handed over, the last ones: an empty pipe has room for them (PIPE_BYTES)."""


def end_process(replies: ReplyPipe, xids: Sequence[XidReport] = ()) -> None:
    """End this process at once, from any thread. The parent process gets `xids` as far as it waits for nothing.

    The kernel then closes every file of it, in whichever library and whatever call hangs: a shutdown of NVML would wait
    for that call, and the embedded engine of a libdcgm before 4.5 has none but its own end.
    """
    _log.info("the driver is being unbound from a GPU: the reader process ends, which has the GPUs open")
    try:
        if xids:
            replies.write_last(msgspec.msgpack.encode(ReaderReply(ENDING, xids=tuple(xids[-MAX_REPORTS:]))))
    finally:
        os._exit(UNBOUND_STATUS)
