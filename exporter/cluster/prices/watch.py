"""Reads the price file: at the start, when it has changed, and again some time after a failure."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from exporter import regular_file
from exporter.backoff import FIRST_PAUSE, LONGEST_PAUSE, Backoff
from exporter.cluster.prices.price import PriceList, PricesInUse
from exporter.config import ConfigFileError
from exporter.log import StateLog
from exporter.regular_file import UnreadableFileError

_LOG = logging.getLogger(__name__)
_MAX_BYTES = 1 << 20
"""The largest price file: as much as a ConfigMap can hold."""
_LOGGED_ROWS = 20
"""How many rows that are left out are logged one by one."""


def load_prices(path: Path) -> PriceList:
    """Read the file. Raises ConfigFileError."""
    from exporter.cluster.prices.price_file import price_list  # noqa: PLC0415 - it brings a YAML reader, which few need

    try:
        content = regular_file.read(path, _MAX_BYTES)
    except UnreadableFileError as error:
        raise ConfigFileError(path, None, f"cannot be read: {error}") from None
    return price_list(content, path)


class PricesWatch:
    """The price file of a running watcher. For use by the collection loop."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[Path], PriceList] = load_prices,
    ) -> None:
        """`clock` is in seconds, for the pauses after failures; `load` raises ConfigFileError."""
        self._path = path
        self._load = load
        self._backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, clock)
        self._log = StateLog(_LOG)
        self._signature: tuple[int, ...] | None = None
        self._in_use = PricesInUse(PriceList(), successful=False)

    def current(self) -> PricesInUse:
        """The prices in use, of the file as it is now. What cannot be read never replaces what was read before."""
        signature = regular_file.signature(self._path)
        if signature != self._signature or (not self._in_use.successful and self._backoff.due):
            self._signature = signature  # taken before the file is read: a change meanwhile is seen next time
            self._in_use = self._read()
        return self._in_use

    def _read(self) -> PricesInUse:
        try:
            found = self._load(self._path)
        except ConfigFileError as error:
            self._backoff.failed()
            self._log.report("file", f"the price list {error}; the last one that could be read stays in use")
            return PricesInUse(self._in_use.list, successful=False)
        self._backoff.reset()
        self._log.clear("file", f"the price list {self._path} can be read again")
        _log_problems(found.problems)
        return PricesInUse(found, successful=True)


def _log_problems(problems: tuple[str, ...]) -> None:
    for problem in problems[:_LOGGED_ROWS]:
        _LOG.warning("a price is left out: %s", problem)
    if len(problems) > _LOGGED_ROWS:
        _LOG.warning("%d further prices are left out", len(problems) - _LOGGED_ROWS)
