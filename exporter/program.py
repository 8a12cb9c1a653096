"""What both programs are: a sampler, a server, and an orderly end. Signals end it from any state, also as PID 1."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass

from exporter.collection_loop import Sampler
from exporter.config import WebConfig
from exporter.web import listener
from exporter.web.server import Rendered, Server
from exporter.web.tls import TlsFiles

logger = logging.getLogger(__name__)

STOP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ProgramPages:
    """What is served: the sampler's newest page, and whether the program is well."""

    sampler: Sampler
    cannot_live: Callable[[], str | None]

    def rendered(self) -> Rendered:
        return self.sampler.page

    def live(self) -> str | None:
        return self.sampler.stalled() or self.cannot_live()

    def ready(self) -> str | None:
        return None if self.sampler.passes else "the first pass has not ended yet"


def serve(title: str, web: WebConfig, pages: ProgramPages, environment: MutableMapping[str, str]) -> Server:
    """A server that listens. Raises ListenError, TlsError or WebConfigError with one sentence."""
    sockets = listener.inherited(environment, os.getpid()) if web.systemd_socket else []
    tls, headers = _web_settings(web)
    server = Server(web.address, pages, title=title, tls=tls, headers=headers, sockets=sockets)
    server.start()
    return server


def _web_settings(web: WebConfig) -> tuple[TlsFiles | None, Mapping[str, str]]:
    """What the web configuration file asks for, where there is one."""
    if web.config_file is None:
        return None, {}
    from exporter.web import config_file  # noqa: PLC0415 - it brings a YAML reader, which few nodes need

    settings = config_file.load(web.config_file)
    return settings.tls, settings.headers


def run_until_signalled(
    sampler: Sampler, server: Server, close: Callable[[], None], hangup: Callable[[], None] = lambda: None
) -> None:
    """Sample and serve until SIGTERM or SIGINT, then end within seconds whatever a source is doing."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: hangup())
    sampler.start()
    logger.info("serving on port %d", server.port)
    stop.wait()
    logger.info("stopping")
    server.stop()
    closing = threading.Thread(target=close, name="close", daemon=True)  # it waits for a read in flight
    closing.start()
    closing.join(2 * STOP_SECONDS)
    sampler.stop(STOP_SECONDS)
