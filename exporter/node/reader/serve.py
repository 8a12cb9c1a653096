"""The main loop of the reader process: reads a request, reads the configured source, writes the reply.

A reply has the devices and their samples, or the reason why the source could not be read.
"""

import logging

import msgspec

from exporter.node.devices.device_source import DeviceSource, ReaderConfig
from exporter.node.reader.protocol import ReaderReply, ReaderRequest, read_frame, write_frame
from exporter.node.reader.reasons import ReaderReason
from exporter.node.reader.sources import open_source
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
    responder = _RequestResponder(msgspec.msgpack.decode(first, type=ReaderConfig))
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(ReaderRequest).decode
    try:
        while (body := read_frame(requests)) is not None:
            write_frame(replies, encode(responder.reply(decode(body).id)))
    finally:
        responder.close()


class _RequestResponder:
    """Replies to requests from the configured source, which is opened for the first of them."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._source: DeviceSource | None = None

    def reply(self, request_id: int) -> ReaderReply:
        try:
            self._source = self._source or open_source(self._config)
            return ReaderReply(request_id, readings=self._source.read())
        except SourceError as error:
            return ReaderReply(request_id, reason=error.reason, message=str(error))
        except Exception as error:  # noqa: BLE001 - see below
            # A defect in a source reaches the parent process as a reason. Uncaught it would end this process, which
            # looks like a crash of a native library, and its embedded engine with it.
            _log.warning("the source raised an exception that is not a SourceError", exc_info=True)
            return ReaderReply(request_id, reason=ReaderReason.INTERNAL, message=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
