"""The main loop of a reader child: one request, one read, one answer, until the parent closes the pipe."""

import logging

import msgspec

from exporter.node.devices.readings import DeviceSource, ReaderConfig
from exporter.node.reader.protocol import Answer, Request, read_frame, write_frame
from exporter.node.reader.sources import open_source
from exporter.source import SourceError

_log = logging.getLogger(__name__)


def serve(requests: int, answers: int) -> None:
    """Reads the configuration and then requests from one descriptor and answers on the other, until its end.

    Raises msgspec.DecodeError or GarbledError when the parent does not speak the protocol.
    """
    first = read_frame(requests)
    if first is None:
        return
    asked = _Asked(msgspec.msgpack.decode(first, type=ReaderConfig))
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(Request).decode
    try:
        while (body := read_frame(requests)) is not None:
            write_frame(answers, encode(asked.answer(decode(body).id)))
    finally:
        asked.close()


class _Asked:
    """The source that the parent asked for, made with the first request."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._source: DeviceSource | None = None

    def answer(self, number: int) -> Answer:
        try:
            self._source = self._source or open_source(self._config)
            return Answer(number, readings=self._source.read())
        except SourceError as error:
            return Answer(number, reason=error.reason, message=str(error))
        except Exception as error:  # noqa: BLE001 - see below
            # The child's main loop: a mistake in one source must reach the parent as a reason, not as a dead child.
            _log.warning("the source failed in a way it does not know", exc_info=True)
            return Answer(number, reason="internal", message=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
