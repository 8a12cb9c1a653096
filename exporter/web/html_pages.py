"""The page of `/`: links to the endpoints, or what a program makes of its state, in a thread of its own."""

import asyncio
import html
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

logger = logging.getLogger(__name__)

HEALTH = ("/health", "/livez", "/readyz")
LINKS = ("/metrics", *HEALTH)
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """An HTML page and the Content-Security-Policy that it is served with."""

    body: bytes
    policy: str = _NOTHING

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers by which a browser runs, loads and keeps nothing, whatever a name in the page looks like."""
        return (
            ("Content-Security-Policy", self.policy),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
        )


def index(title: str) -> HtmlPage:
    """A page with links to the endpoints and nothing else."""
    name = html.escape(title)
    links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in LINKS)
    text = f'<!DOCTYPE html><html lang="en"><title>{name}</title><h1>{name}</h1><ul>{links}</ul></html>\n'
    return HtmlPage(text.encode())


class HtmlPages:
    """Makes one page at a time, outside the event loop; who asks meanwhile gets that one. For use by one event loop."""

    def __init__(self, make: Callable[[], HtmlPage]) -> None:
        """`make` is called in a thread, and may take its time."""
        self._make = make
        self._executor: ThreadPoolExecutor | None = None
        self._making: asyncio.Future[HtmlPage | None] | None = None
        self._logged = ""

    async def page(self) -> HtmlPage | None:
        """The page as it is now; None where a defect in gpugauge prevents it, which the log has."""
        if self._making is None or self._making.done():
            self._executor = self._executor or ThreadPoolExecutor(1, "status-page")
            self._making = asyncio.get_running_loop().run_in_executor(self._executor, self._made)
        return await asyncio.shield(self._making)  # a client that goes does not take the page from the others

    def _made(self) -> HtmlPage | None:
        try:
            return self._make()
        except Exception as error:
            if repr(error) != self._logged:  # whoever may ask for the page could fill the log
                logger.exception("the status page cannot be made because of a defect in gpugauge")
            self._logged = repr(error)
            return None
