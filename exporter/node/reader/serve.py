"""The main loop of the reader process: reads a request, reads the configured source, writes the reply.

A reply has the devices and their samples, or the reason why the source could not be read.
"""

import logging
from functools import partial

import msgspec

from exporter.node.devices.fields.device_source import DeviceSource, ReaderConfig, SourceChoice
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.openers import Leave
from exporter.node.reader.protocol import ReaderReply, ReaderRequest, ReplyPipe, read_frame
from exporter.node.reader.reasons import ReaderReason
from exporter.node.reader.sources import open_source
from exporter.node.reader.unbound import end_process
from exporter.source import SourceError

_log = logging.getLogger(__name__)


def serve(requests: int, replies: int) -> None:
    """Read the configuration and then requests from one descriptor until its end; write replies to the other.

    Raises msgspec.DecodeError or ProtocolError when the parent process does not follow the protocol, and
    BrokenPipeError when it has closed the pipe of the replies.
    """
    first = read_frame(requests)
    if first is None:
        return
    pipe = ReplyPipe(replies)
    responder = _RequestResponder(msgspec.msgpack.decode(first, type=ReaderConfig), partial(end_process, pipe))
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(ReaderRequest).decode
    try:
        while (body := read_frame(requests)) is not None:
            pipe.write(encode(responder.reply(decode(body))))
    finally:
        responder.close()


class _RequestResponder:
    """Replies to requests from the configured source, which is opened for the first of them."""

    def __init__(self, config: ReaderConfig, leave: Leave) -> None:
        self._config, self._leave = config, leave
        self._source: DeviceSource | None = None

    def reply(self, request: ReaderRequest) -> ReaderReply:
        try:
            return ReaderReply(request.id, readings=self._read(request), choice=self._choice)
        except SourceError as error:
            return ReaderReply(request.id, reason=error.reason, message=str(error), choice=self._choice)
        except Exception as error:  # noqa: BLE001 - see below
            # A defect in a source reaches the parent process as a reason. Uncaught it would end this process, which
            # looks like a crash of a native library, and its embedded engine with it.
            _log.warning("the source raised an exception that is not a SourceError", exc_info=True)
            message = f"{type(error).__name__}: {error}"
            return ReaderReply(request.id, reason=ReaderReason.INTERNAL, message=message, choice=self._choice)

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    @property
    def _choice(self) -> SourceChoice | None:
        return self._source.choice if self._source is not None else None

    def _read(self, request: ReaderRequest) -> Readings:
        self._source = self._source or open_source(self._config, self._leave)
        if request.fields is not None:
            self._source.want(request.fields)
        return self._source.read()
