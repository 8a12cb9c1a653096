"""The `auto` source: reads through the first of DCGM and NVML that answers on this node.

The order: a host engine that can be reached; an embedded engine, only where no other engine runs on the node, because
two of them can deadlock the driver; NVML. The simulated source is never chosen. It chooses again only after the chosen
source has failed for a while.
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
"""How long after its last answer the chosen source is tried alone: an engine that restarts is soon there again."""

OPENERS: Mapping[Choice, Opener] = {"host engine": DcgmSource, "embedded engine": DcgmSource, "nvml": NvmlSource}


class AutoSource:
    """A DeviceSource that reads through the chosen one.

    `name` is the name of the chosen source; before there is one, that of the first choice.
    """

    def __init__(
        self,
        config: ReaderConfig,
        openers: Mapping[Choice, Opener] = OPENERS,
        listening: Callable[[], str | None] = listening_engine,
        others: Callable[[], tuple[int, ...]] = other_engines,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`listening` gives the address of a host engine on this node; `others` the process ids of other engines."""
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
        # The first candidate is the one that the node is meant to have: its reason shows what has to be repaired.
        raise SourceError(failures[0][1].reason, _summary(failures))

    def _candidates(self) -> Iterator[tuple[Choice, ReaderConfig]]:
        """The sources of this node, best first. Each is looked for only after the ones before it have failed."""
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
