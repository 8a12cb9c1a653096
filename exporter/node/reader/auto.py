"""The `auto` source: reads from the first of host engine, embedded engine and NVML that answers.

If a host engine is configured or listens on this node: that engine, then NVML. Otherwise an embedded engine, unless
another engine runs here (two engines can deadlock the driver), then NVML. `auto` never chooses the simulated source. It
chooses again when the chosen source fails KEEP_CHOICE_SECONDS or more after its last answer.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from exporter.node.dcgm.running_engines import listening_engine, other_engines
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.device_source import DeviceSource, ReaderConfig
from exporter.node.devices.readings import Readings
from exporter.node.nvml.source import NvmlSource
from exporter.source import SourceError

_log = logging.getLogger(__name__)

Choice = Literal["host engine", "embedded engine", "nvml"]
Opener = Callable[[ReaderConfig], DeviceSource]

KEEP_CHOICE_SECONDS = 30.0
"""While the chosen source fails, others are tried only this long after its last answer: an engine may be restarting."""

OPENERS: Mapping[Choice, Opener] = {"host engine": DcgmSource, "embedded engine": DcgmSource, "nvml": NvmlSource}


class AutoSource:
    """A DeviceSource that reads from the source it has chosen.

    `name` is the name of the source that was chosen last; before that, `config.first_source`.
    """

    def __init__(
        self,
        config: ReaderConfig,
        openers: Mapping[Choice, Opener] = OPENERS,
        listening: Callable[[], str | None] = listening_engine,
        others: Callable[[], tuple[int, ...]] = other_engines,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`listening` gives the address of a host engine on this node; `others` the ids of processes with an engine."""
        self._config, self._openers, self._clock = config, openers, clock
        self._listening, self._others = listening, others
        self.name = config.first_source
        self._chosen: DeviceSource | None = None
        self._answered_at = 0.0

    def read(self) -> Readings:
        """Read the chosen source; without one, or after it has failed for too long, choose one. Raises SourceError."""
        if self._chosen is not None:
            try:
                return self._answered(self._chosen.read())
            except SourceError:
                if self._clock() - self._answered_at < KEEP_CHOICE_SECONDS:
                    raise
                self.close()
        return self._choose()

    def close(self) -> None:
        if self._chosen is not None:
            self._chosen.close()
            self._chosen = None

    def _choose(self) -> Readings:
        failures: list[tuple[Choice, SourceError]] = []
        for choice, config in self._candidates():
            source = self._openers[choice](config)
            try:
                readings = source.read()
            except SourceError as error:
                source.close()
                failures.append((choice, error))
                continue
            self._chosen, self.name = source, source.name
            _log.info("reading from %s%s", choice, f"; these did not answer: {_summary(failures)}" if failures else "")
            return self._answered(readings)
        # The reason to report is that of the best candidate, which would be chosen if it were repaired.
        raise SourceError(failures[0][1].reason, _summary(failures))

    def _candidates(self) -> Iterator[tuple[Choice, ReaderConfig]]:
        """The candidates, best first, one at a time: engines are searched for only when it is their turn."""
        remote = self._config.remote or self._listening()
        if remote is not None:
            yield "host engine", msgspec.structs.replace(self._config, source="dcgm", remote=remote)
        elif not self._others():
            yield "embedded engine", msgspec.structs.replace(self._config, source="dcgm", remote=None)
        yield "nvml", msgspec.structs.replace(self._config, source="nvml")

    def _answered(self, readings: Readings) -> Readings:
        self._answered_at = self._clock()
        return readings


def _summary(failures: Sequence[tuple[Choice, SourceError]]) -> str:
    return "; ".join(f"{choice}: {error}" for choice, error in failures)
