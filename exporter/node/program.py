"""Puts the node exporter together from its configuration, and rebuilds it when the counters file changes."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from exporter.config import ConfigError, NodeConfig
from exporter.exposition.exporter_metrics import ConfigState
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.attribute import AttributionRules
from exporter.node.attribution.kubelet import Kubelet
from exporter.node.devices import pci
from exporter.node.devices.counters_file import Counters, parse
from exporter.node.devices.readings import ReaderConfig
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.reader.supervisor import Reader
from exporter.snapshot import Snapshot
from exporter.source import Source

logger = logging.getLogger(__name__)

DRIVER = Path("/proc/driver/nvidia/version")
LIBRARY_MISSING_SECONDS = 300.0
"""The container runtime injects libraries only when a container starts: after so long a new one is the cure."""


@dataclass(frozen=True, slots=True)
class CountersFile:
    """A counters file that was read; `sha256` is of its text."""

    counters: Counters
    sha256: str


def load_counters(path: Path | None) -> CountersFile:
    """Read the file, or our default set without one. Raises ConfigError when nothing in it can be used."""
    try:
        text = (
            files("exporter.node.devices").joinpath("defaults", "default-counters.csv").read_text(encoding="utf-8")
            if path is None
            else path.read_text(encoding="utf-8")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"counters file {path} cannot be read: {error}") from None
    counters = parse(text, str(path or "default-counters.csv"))
    if not counters.rows and counters.problems:
        raise ConfigError(f"no row of the counters file can be used; the first problem: {counters.problems[0]}")
    return CountersFile(counters, hashlib.sha256(text.encode()).hexdigest())


class NodeProgram:
    """The node exporter without its server: `take` for the sampler, `live` for the probe."""

    def __init__(self, config: NodeConfig, clock: Callable[[], float] = time.monotonic, driver: Path = DRIVER) -> None:
        self._config = config
        self._clock = clock
        self._driver = driver
        self._reload = threading.Event()
        self._library_missing_since: float | None = None
        loaded = load_counters(config.collectors)
        self.config_state = ConfigState(loaded.sha256, successful=True, at=time.time())
        self._pipeline = self._build(loaded)
        self._log_problems(loaded)
        if config.source == "simulated":
            logger.warning("these are simulated GPUs: nothing on this page is measured")
        if config.without_effect:
            logger.warning("without effect here: %s", ", ".join(config.without_effect))

    def take(self) -> Snapshot:
        """One pass, with a new counters file first where one was asked for."""
        if self._reload.is_set():
            self._reload.clear()
            self._take_up_counters()
        snapshot = self._pipeline.take()
        self._watch_for_missing_library(snapshot)
        return snapshot

    def reload(self) -> None:
        """Ask for the counters file to be read again; safe in a signal handler."""
        self._reload.set()

    def live(self) -> str | None:
        """Why only a new container would help, or None."""
        since = self._library_missing_since
        if since is not None and self._clock() - since > LIBRARY_MISSING_SECONDS:
            return "a driver is loaded on this node but its libraries are missing in this container"
        return None

    def close(self) -> None:
        """End the reader child and the kubelet channel; bounded in time."""
        self._pipeline.close()

    def _take_up_counters(self) -> None:
        try:
            loaded = load_counters(self._config.collectors)
        except ConfigError as error:
            logger.error("reload: %s; the last good one stays", error)  # noqa: TRY400 - the sentence says it all
            self.config_state = ConfigState(self.config_state.sha256, successful=False, at=self.config_state.at)
            return
        self._log_problems(loaded)
        old, self._pipeline = self._pipeline, self._build(loaded)
        old.close()
        self.config_state = ConfigState(loaded.sha256, successful=True, at=time.time())
        logger.info("reload: %d rows of the counters file are in use", len(loaded.counters.rows))

    def _build(self, loaded: CountersFile) -> NodePipeline:
        config = self._config
        reader = Reader(
            ReaderConfig(
                source=config.source,
                fields=tuple(field.wanted() for field in loaded.counters.fields),
                interval=config.interval,
                remote=config.remote,
                scenario=str(config.scenario) if config.scenario else None,
                library=str(config.libdcgm) if config.libdcgm else None,
            )
        )
        rules = AttributionRules(extra_resources=frozenset(config.resource_names))
        return NodePipeline(
            NodeSources(reader, self._kubelet()), loaded.counters, config.style, rules, self._expected_gpus
        )

    def _kubelet(self) -> Source[Allocations] | None:
        """The node's kubelet where one is asked for; else a simulated source brings its own holders."""
        config = self._config
        if config.kubernetes:
            return Kubelet(Path(config.kubelet_socket))
        if config.source != "simulated":
            return None
        from exporter.node.simulation.kubelet import SimulatedHolders  # noqa: PLC0415 - likewise
        from exporter.node.simulation.scenario import ScenarioError, load  # noqa: PLC0415 - only a simulated node plays one

        try:
            scenario = load(str(config.scenario) if config.scenario else None)
        except ScenarioError as error:
            raise ConfigError(str(error)) from None
        return SimulatedHolders(scenario, scenario.begins(time.time()))

    def _expected_gpus(self) -> int:
        if self._config.source == "simulated":
            return self._config.expected_gpus
        return max(self._config.expected_gpus, pci.count_gpus())

    def _log_problems(self, loaded: CountersFile) -> None:
        for problem in loaded.counters.problems:
            logger.warning("%s", problem)

    def _watch_for_missing_library(self, snapshot: Snapshot) -> None:
        missing = any(health.reason == "library_missing" for health in snapshot.health)
        if not (missing and self._driver.exists()):
            self._library_missing_since = None
        elif self._library_missing_since is None:
            self._library_missing_since = self._clock()
