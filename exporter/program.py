"""What both programs have in common: a collection loop, an HTTP server with its endpoints, and a graceful shutdown.

SIGTERM and SIGINT end a program in any state, also when it is process 1 of a container.
"""

import logging
import os
import signal
import ssl
import threading
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from exporter.collection_loop import Collected, CollectionLoop
from exporter.config import WebOptions
from exporter.status_page.content import StatusPage
from exporter.status_page.html import POLICY, page_html
from exporter.web import listener
from exporter.web.endpoints import RenderedExposition
from exporter.web.html_pages import LINKS, HtmlPage
from exporter.web.limits import Limits
from exporter.web.server import HttpServer
from exporter.web.settings import WebSettings

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

    unhealthy: Callable[[], str | None] = lambda: None
    """Returns a message, without paths, while /health is not OK, else None."""

    def exposition(self) -> RenderedExposition:
        return self.loop.exposition

    def healthy(self) -> str | None:
        return self.unhealthy()

    def live(self) -> str | None:
        return self.loop.stalled() or self.restart_needed()

    def ready(self) -> str | None:
        return self.loop.late() or self.unready()


@dataclass(slots=True)
class StatusPageMaker:
    """Makes the page of `/`: anew after a collection, or when collections have stopped, else the one made before.

    For one thread. It keeps no snapshot, of which a page that nobody asks for again would keep the objects alive.
    """

    title: str
    loop: CollectionLoop
    content: Callable[[Collected], StatusPage]
    _of: tuple[int, bool] = (-1, False)
    """The collection of which the page was made, and whether there should have been another one since."""
    _page: HtmlPage | None = None

    def __call__(self) -> HtmlPage:
        newest, late = self.loop.newest, self.loop.late()
        of = newest.number, late is not None
        page = self._page
        if page is None or of != self._of:
            banner = "" if late is None else "No collection has ended lately: what follows is old, or not there yet."
            body = page_html(self.title, self.content(newest), LINKS, banner)
            page = HtmlPage(body, POLICY)
            self._of, self._page = of, page
        return page


def serve(
    title: str,
    web: WebOptions,
    endpoints: ProgramEndpoints,
    environment: MutableMapping[str, str],
    content: Callable[[Collected], StatusPage],
) -> "RunningServers":
    """Start the HTTP server; `content` fills the status page. Raises ListenError, TlsError or ConfigFileError."""
    sockets = listener.inherited(environment, os.getpid()) if web.systemd_socket else []
    settings = _web_settings(web)
    page = StatusPageMaker(title, endpoints.loop, content) if web.status_page else None
    limits = Limits(request_seconds=web.read_seconds, response_seconds=web.write_seconds)
    servers = [
        HttpServer(
            web.address, endpoints, title=title, settings=settings, status_page=page, sockets=sockets, limits=limits
        ),
    ]
    if web.health_address:
        servers.append(HttpServer(web.health_address, endpoints, title=title, health_only=True, limits=limits))
    elif (tls := settings().tls) is not None and tls.verify_mode is ssl.CERT_REQUIRED:
        logger.warning("every client needs a certificate, and probes have none: give them a --health-address")
    for server in servers:
        server.start()
    return RunningServers(servers)


def _web_settings(web: WebOptions) -> Callable[[], WebSettings]:
    """The settings of the web configuration file as it is now, or the default ones without such a file."""
    if web.config_file is None:
        return WebSettings
    from exporter.web.live_settings import LiveSettings  # noqa: PLC0415 - it brings a YAML reader, which few nodes need

    return LiveSettings(web.config_file).current


class RunningServers:
    """The HTTP server and, where it has an address of its own, that of the health endpoints."""

    def __init__(self, servers: Sequence[HttpServer]) -> None:
        """The first one serves everything."""
        self._servers = servers

    def ports(self) -> str:
        """The ports in use, for the log."""
        main, *others = (f"port {server.port}" for server in self._servers)
        return ", health on ".join((main, *others))

    @property
    def failure(self) -> BaseException | None:
        """What ended a server, if it was an exception."""
        return next((server.failure for server in self._servers if server.failure), None)

    def alive(self) -> bool:
        """Whether all of them serve."""
        return all(server.alive() for server in self._servers)

    def stop(self) -> None:
        """Stop all of them, each within two seconds."""
        for server in self._servers:
            server.stop()


def run_until_signaled(
    loop: CollectionLoop,
    server: RunningServers,
    close: Callable[[], None],
    hangup: Callable[[], None] = lambda: None,
    check_seconds: float = SERVER_CHECK_SECONDS,
) -> bool:
    """Collect and serve until SIGTERM or SIGINT, then end within seconds even when a source hangs.

    `close` closes the sources; `hangup` is called on SIGHUP. Returns True after a signal, and False if the HTTP server
    has ended by itself, which is looked for every `check_seconds`: nothing can be scraped then.
    """
    # Not an Event: a handler runs in the middle of this thread's wait(), which may hold the lock that set() needs.
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _: signals.put(caught))
    signal.signal(signal.SIGHUP, lambda *_: hangup())
    loop.start()
    logger.info("serving on %s", server.ports())
    signaled = _came(signals, check_seconds)
    while not signaled and server.alive():
        signaled = _came(signals, check_seconds)
    if not signaled:
        logger.error("the HTTP server has ended by itself, so this process ends too", exc_info=server.failure)
    _stop(loop, server, close)
    return signaled


def _came(signals: SimpleQueue[int], seconds: float) -> bool:
    """Wait at most so many seconds for a signal."""
    try:
        signals.get(timeout=seconds)
    except Empty:
        return False
    return True


def _stop(loop: CollectionLoop, server: RunningServers, close: Callable[[], None]) -> None:
    """Stop the server, then the collections, then the sources: a collection must not find a source closed."""
    logger.info("stopping")
    server.stop()
    loop.stop(STOP_SECONDS)
    # In a thread of its own: close() waits for a read that has begun, and that may hang.
    closing = threading.Thread(target=close, name="close", daemon=True)
    closing.start()
    closing.join(2 * STOP_SECONDS)
    loop.stop(STOP_SECONDS)  # a read that took longer has ended now, because its source was closed
