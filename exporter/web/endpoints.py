"""What a program gives the HTTP server to serve."""

from typing import Protocol


class RenderedExposition(Protocol):
    """One exposition in the four forms that a client may ask for, as they are sent."""

    @property
    def text(self) -> bytes: ...

    @property
    def text_gzip(self) -> bytes: ...

    @property
    def openmetrics(self) -> bytes: ...

    @property
    def openmetrics_gzip(self) -> bytes: ...


class Endpoints(Protocol):
    """What is served. Each method must return at once: it runs in the event loop, where every connection waits."""

    def exposition(self) -> RenderedExposition:
        """The newest exposition; before the first collection, one with only the exporter metrics."""
        ...

    def healthy(self) -> str | None:
        """None, or one message why /health, dcgm-exporter's endpoint, is not OK, without paths and arguments."""
        ...

    def live(self) -> str | None:
        """None, or one message why the process should be restarted, without paths and arguments."""
        ...

    def ready(self) -> str | None:
        """None, or one message why there is nothing useful to scrape yet, without paths and arguments."""
        ...
