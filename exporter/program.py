"""What both programs have in common: a collection loop, an HTTP server with its endpoints, and a graceful shutdown.

SIGTERM and SIGINT end a program in any state, also when it is process 1 of a container.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass

from exporter.collection_loop import CollectionLoop
from exporter.config import WebOptions
from exporter.web import listener
from exporter.web.server import HttpServer, RenderedExposition
from exporter.web.tls import TlsFiles

logger = logging.getLogger(__name__)

STOP_SECONDS = 1.0
"""How long a collection in progress may take to end; closing the sources may take twice as long."""
SERVER_CHECK_SECONDS = 1.0
"""How often the program looks whether its HTTP server still runs."""


@dataclass(frozen=True, slots=True)
class ProgramEndpoints:
    """The endpoints of a program: the newest exposition, liveness and readiness."""

    loop: CollectionLoop
    restart_needed: Callable[[], str | None]
    """Returns a message when only a restart of the container can help, else None."""
    unready: Callable[[], str | None] = lambda: None
    """Returns a message, without paths, while the program has nothing useful to expose, else None."""

    def exposition(self) -> RenderedExposition:
        return self.loop.exposition

    def live(self) -> str | None:
        return self.loop.stalled() or self.restart_needed()

    def ready(self) -> str | None:
        return self.loop.late() or self.unready()


def serve(
    title: str, web: WebOptions, endpoints: ProgramEndpoints, environment: MutableMapping[str, str]
) -> HttpServer:
    """Start the HTTP server. Raises ListenError, TlsError or WebConfigError with one message."""
    sockets = listener.inherited(environment, os.getpid()) if web.systemd_socket else []
    tls, headers = _web_settings(web)
    server = HttpServer(web.address, endpoints, title=title, tls=tls, headers=headers, sockets=sockets)
    server.start()
    return server


def _web_settings(web: WebOptions) -> tuple[TlsFiles | None, Mapping[str, str]]:
    """TLS files and response headers from the web configuration file, if there is one."""
    if web.config_file is None:
        return None, {}
    from exporter.web import config_file  # noqa: PLC0415 - it brings a YAML reader, which few nodes need

    settings = config_file.load(web.config_file)
    return settings.tls, settings.headers


def run_until_signaled(
    loop: CollectionLoop, server: HttpServer, close: Callable[[], None], hangup: Callable[[], None] = lambda: None
) -> bool:
    """Collect and serve until SIGTERM or SIGINT, then end within seconds even when a source hangs.

    `close` closes the sources; `hangup` is called on SIGHUP. Returns True after a signal, and False if the HTTP server
    has ended by itself: nothing can be scraped then.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: hangup())
    loop.start()
    logger.info("serving on port %d", server.port)
    while not stop.wait(SERVER_CHECK_SECONDS) and server.alive():
        pass
    signaled = stop.is_set()
    if not signaled:
        logger.error("the HTTP server has ended by itself, so this process ends too", exc_info=server.failure)
    _stop(loop, server, close)
    return signaled


def _stop(loop: CollectionLoop, server: HttpServer, close: Callable[[], None]) -> None:
    """Stop the server, then the collections, then the sources: a collection must not find a source closed."""
    logger.info("stopping")
    server.stop()
    loop.stop(STOP_SECONDS)
    # In a thread of its own: close() waits for a read that has begun, and that may hang.
    closing = threading.Thread(target=close, name="close", daemon=True)
    closing.start()
    closing.join(2 * STOP_SECONDS)
    loop.stop(STOP_SECONDS)  # a read that took longer has ended now, because its source was closed
