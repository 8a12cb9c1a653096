"""The exposition of one collection in every form that a scrape may ask for, each made at most once.

Compressing is the dearest part of a collection, and hardly anyone asks for every form. So the collection loop makes
the forms that were asked for lately; another form is made by the thread that asks for it first.
"""

import gzip
import threading
import time
from collections.abc import Callable
from enum import Enum

GZIP_LEVEL = 1  # measured on our expositions: level 6 saves a tenth of the bytes for five times the time

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
        self, text: bytes, openmetrics: Callable[[], bytes], dropped: int = 0, demand: Demand | None = None
    ) -> None:
        """Make the forms that were asked for lately; `openmetrics` renders OpenMetrics and is called at most once."""
        self.dropped = dropped
        """Samples left out: NaN, infinite, a negative counter, or labels that the family already had."""
        self._render_openmetrics = openmetrics
        self._demand = demand or Demand()
        self._lock = threading.Lock()
        self._made = {Form.TEXT: text}
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
            match form:
                case Form.OPENMETRICS:
                    self._made[form] = self._render_openmetrics()
                case Form.OPENMETRICS_GZIP:
                    self._made[form] = _compressed(self._make(Form.OPENMETRICS))
                case _:
                    self._made[form] = _compressed(self._made[Form.TEXT])
        return self._made[form]


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, GZIP_LEVEL, mtime=0)
