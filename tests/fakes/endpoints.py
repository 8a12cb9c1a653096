"""A page and health that a test sets, and a server over them."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from exporter.web.server import Server


@dataclass(frozen=True)
class FixedPage:
    text: bytes
    text_gzip: bytes
    openmetrics: bytes
    openmetrics_gzip: bytes


def page(text: bytes) -> FixedPage:
    openmetrics = text + b"# EOF\n"
    return FixedPage(text, gzip.compress(text), openmetrics, gzip.compress(openmetrics))


@dataclass
class FixedPages:
    shown: FixedPage = field(default_factory=lambda: page(b"a 1\n"))
    not_live: str | None = None
    not_ready: str | None = None

    def rendered(self) -> FixedPage:
        return self.shown

    def live(self) -> str | None:
        return self.not_live

    def ready(self) -> str | None:
        return self.not_ready


@contextmanager
def serving(pages: FixedPages | None = None, address: str = "127.0.0.1:0", **options) -> Iterator[Server]:
    server = Server(address, pages or FixedPages(), **options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        assert not server.alive()
