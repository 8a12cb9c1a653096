"""The `auto` source: the best one this node offers now, chosen anew only while the chosen one is down.

In order: a host engine that can be reached; an embedded engine, only where no other engine runs on the node, because
two of them can deadlock the driver; NVML. Never the simulated source.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from exporter.node.dcgm.running_engines import foreign_engines, listening_engine
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.readings import DeviceSource, ReaderConfig, Readings
from exporter.node.nvml.source import NvmlSource
from exporter.source import SourceError

_log = logging.getLogger(__name__)

Choice = Literal["host engine", "embedded engine", "nvml"]
Opener = Callable[[ReaderConfig], DeviceSource]

LOYALTY = 30.0
"""Seconds for which a choice that is down is tried alone: an engine that restarts must not be given up at once."""

OPENERS: Mapping[Choice, Opener] = {"host engine": DcgmSource, "embedded engine": DcgmSource, "nvml": NvmlSource}


class AutoSource:
    """A DeviceSource that stands for whichever of the real ones answers.

    `name` is that of the chosen source; `dcgm`, the first choice, before there is one.
    """

    def __init__(
        self,
        config: ReaderConfig,
        openers: Mapping[Choice, Opener] = OPENERS,
        listening: Callable[[], str | None] = listening_engine,
        foreign: Callable[[], tuple[int, ...]] = foreign_engines,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._openers, self._clock = config, openers, clock
        self._listening, self._foreign = listening, foreign
        self.name = "dcgm"
        self._chosen: DeviceSource | None = None
        self._answered_at = 0.0

    def read(self) -> Readings:
        """The chosen source's readings, or those of the first candidate that answers. Raises SourceError."""
        if self._chosen is not None:
            try:
                return self._answered(self._chosen.read())
            except SourceError:
                if self._clock() - self._answered_at < LOYALTY:
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
            _log.info("reading from %s%s", choice, f"; passed over {_sentence(failures)}" if failures else "")
            return self._answered(readings)
        # The first candidate is the one that the node is meant to have; its reason says what to repair.
        raise SourceError(failures[0][1].reason, _sentence(failures))

    def _candidates(self) -> Iterator[tuple[Choice, ReaderConfig]]:
        """What this node offers, best first, looked up one by one as the ones before fail."""
        remote = self._config.remote or self._listening()
        if remote is not None:
            yield "host engine", msgspec.structs.replace(self._config, source="dcgm", remote=remote)
        elif not self._foreign():
            yield "embedded engine", msgspec.structs.replace(self._config, source="dcgm", remote=None)
        yield "nvml", msgspec.structs.replace(self._config, source="nvml")

    def _answered(self, readings: Readings) -> Readings:
        self._answered_at = self._clock()
        return readings


def _sentence(failures: Sequence[tuple[Choice, SourceError]]) -> str:
    return "; ".join(f"{choice}: {error}" for choice, error in failures)
