"""The `auto` source: reads from the first of host engine, embedded engine and NVML that answers.

If a host engine is configured or listens on this node: that engine, then NVML; from then on no engine is embedded, even
while that one is away. Otherwise an embedded engine, unless another engine runs here (two engines can deadlock the
driver), then NVML. `auto` never chooses the simulated source.

The choice is in one of three states. Unchosen: the next read tries the candidates in order. Chosen: it answers. Suspect
since its first failure: only it is tried, until it answers or its PATIENCE_SECONDS are over; then the choice is made
again. While NVML is read because a host engine is away, that one is asked in the background, and chosen once it
answers. One that is not chosen is waited for FIRST_ANSWER_SECONDS at most. The choice survives this process: the next
reader process begins with it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from exporter.background import Starter
from exporter.node.dcgm.host_engine.running_engines import listening_engine, other_engines, others_text
from exporter.node.devices.fields.device_source import (
    Choice,
    DeviceSource,
    ReaderConfig,
    SourceChoice,
    SourceName,
    WantedField,
)
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.host_engine import HostEngine, Waiter
from exporter.node.reader.openers import Leave, open_dcgm, open_nvml
from exporter.node.reader.reasons import ReaderReason
from exporter.source import SourceError

_log = logging.getLogger(__name__)

Opener = Callable[[ReaderConfig], DeviceSource]

PATIENCE_SECONDS: Mapping[Choice, float] = {"host engine": 300.0, "embedded engine": 30.0, "nvml": 30.0}
"""How long after its first failure the chosen source is still tried alone. A host engine may be restarting or updated,
and each change of the source ends series and begins others."""

FIRST_ANSWER_SECONDS = 8.0
"""How long an engine may take that accepts the connection but is not chosen yet, before NVML is read. A connect alone
takes 3 s at most; the reader process has 10 s for a reply, in which NVML must answer too."""


def openers_of(leave: Leave) -> Mapping[Choice, Opener]:
    """Return what opens each source; `leave` ends this process when the driver is unbound from a GPU."""
    dcgm = partial(open_dcgm, leave=leave)
    return {"host engine": dcgm, "embedded engine": dcgm, "nvml": partial(open_nvml, leave=leave)}


class AutoSource:
    """A DeviceSource that reads from the source it has chosen.

    `name` is the name of the source that was chosen last; before that, `config.first_source`.
    """

    def __init__(
        self,
        config: ReaderConfig,
        openers: Mapping[Choice, Opener],
        listening: Callable[[], str | None] = listening_engine,
        others: Callable[[], tuple[int, ...]] = other_engines,
        clock: Callable[[], float] = time.monotonic,
        start: Starter | None = None,
        wait: Waiter = threading.Event.wait,
    ) -> None:
        """`listening` gives the address of a host engine on this node; `others` the ids of processes with an engine."""
        self._config, self._openers, self._clock, self._start, self._wait = config, openers, clock, start, wait
        self._listening, self._others = listening, others
        self.name = config.first_source
        self._engine: HostEngine | None = None
        """The host engine of this node, once one is known: it stays open and is never given up."""
        self._engine_address: str | None = None
        self._chosen: DeviceSource | None = None
        self._choice: Choice | None = None
        """What was chosen last."""
        self._suspect_since: float | None = None
        self._beside: tuple[int, ...] = ()
        """The processes because of which no engine was embedded."""
        if config.choice is not None:
            self._begin_with(config.choice)

    @property
    def choice(self) -> SourceChoice | None:
        """What is chosen now, for the next reader process."""
        return SourceChoice(
            self._choice if self._chosen is not None else None, self._engine_address, self._suspect_since
        )

    def want(self, fields: Sequence[WantedField]) -> None:
        """Read these fields from the next read on, from whichever source."""
        self._config = msgspec.structs.replace(self._config, fields=tuple(fields))
        for source in {id(each): each for each in (self._engine, self._chosen) if each is not None}.values():
            source.want(fields)

    def read(self) -> Readings:
        """Read the chosen source; without one, or after it has failed for too long, choose one. Raises SourceError."""
        readings = self._read()
        if not self._beside or self._choice != "nvml":
            return readings
        problem = (ReaderReason.OTHER_ENGINE, f"no engine is embedded: {others_text(self._beside)}")
        return msgspec.structs.replace(readings, problems=(*readings.problems, problem))

    def _read(self) -> Readings:
        if self._chosen is None or self._choice is None:
            return self._choose()
        if self._choice == "nvml" and self._engine is not None and self._engine.answers():
            try:
                return self._returned_to(self._engine)
            except SourceError:
                _log.debug("the host engine answered and then failed")
        return self._read_chosen(self._chosen, self._choice)

    def close(self) -> None:
        self._leave()
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _begin_with(self, last: SourceChoice) -> None:
        """Go on with what the last reader process had chosen, unless that had failed for too long."""
        self._engine_address = last.engine
        engine = self._host_engine() if last.engine is not None else None
        if last.chosen is None or not self._may_go_on(last.chosen, last.suspect_since):
            return
        chosen = engine if last.chosen == "host engine" else self._opened(last.chosen)
        self._beside = self._others() if last.chosen == "nvml" and engine is None else ()
        if chosen is not None:
            self._chosen, self._choice, self._suspect_since = chosen, last.chosen, last.suspect_since
            self.name = chosen.name

    def _may_go_on(self, choice: Choice, suspect_since: float | None) -> bool:
        if suspect_since is not None and self._clock() - suspect_since >= PATIENCE_SECONDS[choice]:
            return False
        # Another engine may have been started since the last reader process ended, and with it its embedded engine.
        return choice != "embedded engine" or not (self._listening() or self._others())

    def _read_chosen(self, source: DeviceSource, choice: Choice) -> Readings:
        try:
            readings = source.read()
        except SourceError:
            now = self._clock()
            self._suspect_since = now if self._suspect_since is None else self._suspect_since
            if now - self._suspect_since < PATIENCE_SECONDS[choice]:
                raise
            self._leave()
            return self._choose()
        self._suspect_since = None
        return readings

    def _returned_to(self, engine: HostEngine) -> Readings:
        """Read the engine, and if it still answers, choose it instead of NVML. Raises SourceError."""
        readings = engine.read_within(FIRST_ANSWER_SECONDS)
        self._leave()
        self._enter("host engine", engine, "it answers")
        return readings

    def _choose(self) -> Readings:
        failures: list[tuple[Choice, SourceError]] = []
        for choice, source in self._candidates():
            try:
                readings = self._first_read(source)
            except SourceError as error:
                if source is not self._engine:
                    source.close()
                failures.append((choice, error))
                continue
            self._enter(choice, source, f"these did not answer: {_summary(failures)}" if failures else "")
            return readings
        # The reason to report is that of the best candidate, which would be chosen if it were repaired.
        raise SourceError(failures[0][1].reason, _summary(failures))

    def _first_read(self, source: DeviceSource) -> Readings:
        return source.read_within(FIRST_ANSWER_SECONDS) if isinstance(source, HostEngine) else source.read()

    def _candidates(self) -> Iterator[tuple[Choice, DeviceSource]]:
        """The candidates, best first, opened one at a time: engines are searched for only when it is their turn."""
        engine = self._host_engine()
        self._beside = self._others() if engine is None else ()
        if engine is not None:
            yield "host engine", engine
        elif not self._beside:
            yield "embedded engine", self._opened("embedded engine")
        yield "nvml", self._opened("nvml")

    def _host_engine(self) -> HostEngine | None:
        """The known host engine, else the configured one, else one that listens on this node."""
        if self._engine is None:
            self._engine_address = self._config.remote or self._engine_address or self._listening()
            if self._engine_address is not None:
                self._engine = HostEngine(self._opened("host engine"), self._start, self._wait)
        return self._engine

    def _opened(self, choice: Choice) -> DeviceSource:
        source: SourceName = "nvml" if choice == "nvml" else "dcgm"
        remote = self._engine_address if choice == "host engine" else None
        return self._openers[choice](msgspec.structs.replace(self._config, source=source, remote=remote))

    def _enter(self, choice: Choice, source: DeviceSource, why: str) -> None:
        if choice != self._choice:
            _log.info("reading from %s%s", choice, f"; {why}" if why else "")
        self._chosen, self._choice, self.name = source, choice, source.name

    def _leave(self) -> None:
        """Choose no source; close the one that was chosen, unless it is the host engine, which may return."""
        chosen, self._chosen, self._suspect_since = self._chosen, None, None
        if chosen is not None and chosen is not self._engine:
            chosen.close()


def _summary(failures: Sequence[tuple[Choice, SourceError]]) -> str:
    return "; ".join(f"{choice}: {error}" for choice, error in failures)
