"""An exposition and health that a test sets, and a server that serves them."""

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from exporter.web.config_file import WebConfigFile
from exporter.web.live_settings import made_of
from exporter.web.server import HttpServer
from exporter.web.settings import WebSettings

STOP_LIMIT_SECONDS = 15.0


@dataclass(frozen=True)
class FixedExposition:
    text: bytes
    text_gzip: bytes
    openmetrics: bytes
    openmetrics_gzip: bytes


def exposition_of(text: bytes) -> FixedExposition:
    """An exposition with this text; equal texts give equal bytes (gzip would add the time by itself)."""
    openmetrics = text + b"# EOF\n"
    return FixedExposition(text, gzip.compress(text, mtime=0), openmetrics, gzip.compress(openmetrics, mtime=0))


@dataclass
class FixedEndpoints:
    shown: FixedExposition = field(default_factory=lambda: exposition_of(b"a 1\n"))
    not_healthy: str | None = None
    not_live: str | None = None
    not_ready: str | None = None

    def exposition(self) -> FixedExposition:
        return self.shown

    def healthy(self) -> str | None:
        return self.not_healthy

    def live(self) -> str | None:
        return self.not_live

    def ready(self) -> str | None:
        return self.not_ready


def wait_until_stopped(server: HttpServer) -> None:
    """Wait for the server's thread to end: on a busy machine that may be after `stop` has returned."""
    deadline = time.monotonic() + STOP_LIMIT_SECONDS
    while server.alive():
        assert time.monotonic() < deadline, f"the server did not stop within {STOP_LIMIT_SECONDS:g} s"
        time.sleep(0.01)


def fixed(web: WebConfigFile) -> Callable[[], WebSettings]:
    """Settings that do not change while the server runs."""
    settings = made_of(web)
    return lambda: settings


@contextmanager
def serving(
    endpoints: FixedEndpoints | None = None,
    address: str = "127.0.0.1:0",
    web: WebConfigFile | None = None,
    **options,
) -> Iterator[HttpServer]:
    """A server, with these settings of a web configuration file where some are given."""
    if web is not None:
        options["settings"] = fixed(web)
    server = HttpServer(address, endpoints or FixedEndpoints(), **options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        wait_until_stopped(server)
