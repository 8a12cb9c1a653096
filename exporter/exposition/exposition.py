"""The exposition of one collection in every form that a scrape may ask for, each made at most once.

Compressing is the dearest part of a collection, and hardly anyone asks for every form. So the collection loop makes
the forms that were asked for lately; another form is made by the thread that asks for it first.
"""

import threading
import time
from collections.abc import Callable, Sequence
from enum import Enum

from exporter.exposition.page import Piece, gzip_page, plain_page

RECENT_SECONDS = 300.0
"""A form counts as asked for lately for this long: Prometheus regards a series without a new sample as ended then."""


class Form(Enum):
    """What a client may ask for: the text format or OpenMetrics, plain or gzip."""

    TEXT = "text"
    TEXT_GZIP = "text, gzip"
    OPENMETRICS = "OpenMetrics"
    OPENMETRICS_GZIP = "OpenMetrics, gzip"


class Demand:
    """Which forms were asked for lately. Threads may use it at the same time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[Form, float] = {}

    def note(self, form: Form) -> None:
        """Note that a client asks for this form now."""
        with self._lock:
            self._last[form] = self._clock()

    def recent(self) -> list[Form]:
        """The forms that were asked for in the last `RECENT_SECONDS`."""
        oldest = self._clock() - RECENT_SECONDS
        with self._lock:
            return [form for form, last in self._last.items() if last >= oldest]


class Exposition:
    """The result of one collection. Threads may read it at the same time; what it is made from does not change."""

    def __init__(
        self,
        text: Callable[[], Sequence[Piece]],
        openmetrics: Callable[[], Sequence[Piece]],
        dropped: int = 0,
        demand: Demand | None = None,
    ) -> None:
        """Make the forms that were asked for lately; `text` and `openmetrics` are each called at most once."""
        self.dropped = dropped
        """Samples left out: NaN, infinite, a negative counter, or labels that the family already had."""
        self._write = {False: text, True: openmetrics}
        self._pieces: dict[bool, Sequence[Piece]] = {}
        """By whether it is OpenMetrics."""
        self._demand = demand or Demand()
        self._lock = threading.Lock()
        self._made: dict[Form, bytes] = {}
        for form in self._demand.recent():
            self._make(form)

    @property
    def text(self) -> bytes:
        """The text format."""
        return self._asked_for(Form.TEXT)

    @property
    def text_gzip(self) -> bytes:
        """The text format, compressed."""
        return self._asked_for(Form.TEXT_GZIP)

    @property
    def openmetrics(self) -> bytes:
        """OpenMetrics."""
        return self._asked_for(Form.OPENMETRICS)

    @property
    def openmetrics_gzip(self) -> bytes:
        """OpenMetrics, compressed."""
        return self._asked_for(Form.OPENMETRICS_GZIP)

    @property
    def forms(self) -> frozenset[Form]:
        """The forms that are made so far."""
        with self._lock:
            return frozenset(self._made)

    def _asked_for(self, form: Form) -> bytes:
        self._demand.note(form)
        with self._lock:
            return self._make(form)

    def _make(self, form: Form) -> bytes:
        """Return one form, made now if it is not yet there. The caller has the lock, or no other thread knows us."""
        if form not in self._made:
            openmetrics = form in (Form.OPENMETRICS, Form.OPENMETRICS_GZIP)
            if openmetrics not in self._pieces:
                self._pieces[openmetrics] = self._write[openmetrics]()
            join = gzip_page if form in (Form.TEXT_GZIP, Form.OPENMETRICS_GZIP) else plain_page
            self._made[form] = join(self._pieces[openmetrics])
        return self._made[form]
