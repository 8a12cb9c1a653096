"""Builds and runs the node exporter from its configuration: pipeline, collection loop and web server.

The counters file states which fields are exposed. A reload, when the file is due or on SIGHUP, reads it again; the
running reader and pipeline are told of new content, and keep all that they know.
"""

import logging
import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.node.attribution.matching.mps import replica_sharing
from exporter.node.audit.start import start_audit_log
from exporter.node.config import NodeConfig
from exporter.node.counters_source import counters_source
from exporter.node.counters_watch import (
    LOGGED_PROBLEMS,
    LoadedCounters,
    UnusableCountersError,
)
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.counters.watch_intervals import mismatches, wanted_at
from exporter.node.devices.entities.pci import PciBus
from exporter.node.devices.fields.device_source import ReaderConfig, WantedField
from exporter.node.open_sources import open_sources
from exporter.node.pipeline import NodePipeline
from exporter.node.profiling_pause import ProfilingPause
from exporter.node.reader.supervisor import COMMAND, Reader
from exporter.node.restart_need import DRIVER, RestartNeed
from exporter.node.state_file.keeper import StateKeeper
from exporter.node.status import node_page
from exporter.program import ProgramEndpoints, run_until_signaled, serve
from exporter.snapshot import Snapshot

logger = logging.getLogger(__name__)


class NodeProgram:
    """The node exporter without its server.

    `collect` is for the collection loop's thread; `reload`, `restart_needed` and `unready` may be called from any.
    """

    def __init__(
        self,
        config: NodeConfig,
        clock: Callable[[], float] = time.monotonic,
        driver: Path = DRIVER,
        pci: PciBus | None = None,
    ) -> None:
        self._config = config
        self._restart = RestartNeed(clock, driver)
        self._pci = pci or PciBus()
        self._reload = threading.Event()
        self._unusable: str | None = None
        self._counters_watch = counters_source(config, clock)
        self._keeper = state_keeper(config)
        self._audit = start_audit_log(config.audit, config.style.hostname, config.interval)
        self._pause = ProfilingPause(config.profiling_pause_file)
        self._counters, self.config_state = self._first_counters()
        self._reader = self._start_reader()
        self._pipeline = self._build(self._counters)
        if config.source == "simulated":
            logger.warning("the GPUs are simulated: nothing in /metrics is measured")

    def collect(self) -> Snapshot:
        """Make one collection, after reloading the counters file if it is due or that was asked for."""
        asked = self._reload.is_set()
        if asked or self._counters_watch.due():
            self._reload.clear()
            self._reload_counters(asked=asked)
        if self._pause.look():
            self._reader.want(self._wanted())
        snapshot = self._collect_and_remember()
        self._restart.note(snapshot)
        paused = self._pause.problem(self._reader.name)
        return snapshot if paused is None else replace(snapshot, problems=(*snapshot.problems, paused))

    def reload(self) -> None:
        """Ask for the counters file to be read again before the next collection; safe in a signal handler."""
        self._reload.set()

    def restart_needed(self) -> str | None:
        """A message when only a restart of the container can help, else None."""
        return self._restart.message()

    def unready(self) -> str | None:
        """One message, without its path, while no counters file is in use because it cannot be used, else None."""
        return self._unusable

    def unhealthy(self) -> str | None:
        """One message while no GPU was read since the start although `/health` requires that, else None."""
        if not self._config.health_requires_gpus or self._pipeline.has_read_a_gpu:
            return None
        return "no GPU was read since the start"

    def close(self) -> None:
        """Write state file and audit log, end the reader process and the connection to the kubelet; bounded in time."""
        if self._keeper is not None:
            self._keeper.close()
        self._audit.close()
        self._pipeline.close()

    def _collect_and_remember(self) -> Snapshot:
        keeper = self._keeper
        if keeper is None:
            return self._pipeline.collect()
        change = keeper.take_up()
        if change is not None:
            self._pipeline.take_up(change)
        snapshot = self._pipeline.collect()
        keeper.keep(self._pipeline.state)
        problem = keeper.problem()
        return snapshot if problem is None else replace(snapshot, problems=(*snapshot.problems, problem))

    def _first_counters(self) -> tuple[Counters, ConfigState]:
        """The counters to start with; none where the file cannot be used, which only a reload can change.

        The built-in list is no substitute: it would expose what the user did not ask for, as if all were well.
        """
        try:
            loaded = self._counters_watch.read()
        except UnusableCountersError as error:
            logger.error("%s; no field is read until it is mended", error)  # noqa: TRY400 - as below
            self._unusable = error.for_response()
            return Counters((), ()), ConfigState(None, successful=False)
        self._log(loaded)
        return loaded.counters, loaded.state()

    def _log(self, loaded: LoadedCounters) -> None:
        loaded.log_problems()
        for message in islice(mismatches(self._config.pace, loaded.counters), LOGGED_PROBLEMS):
            logger.warning("%s", message)

    def _reload_counters(self, *, asked: bool) -> None:
        known = self._counters_watch.failure
        try:
            loaded = self._counters_watch.read()
        except UnusableCountersError as error:
            if asked or str(error) != known:
                logger.error("reload: %s; the counters stay as they were", error)  # noqa: TRY400 - no traceback
            self.config_state = replace(self.config_state, successful=False)
            self._unusable = self._unusable and error.for_response()
            return
        same = loaded.sha256 == self.config_state.sha256
        self.config_state = loaded.state()
        self._unusable = None
        if same:
            logger.info("reload: the content of the counters file is the one in use")
            return
        self._log(loaded)
        self._counters = loaded.counters
        self._reader.want(self._wanted())
        self._pipeline.use(loaded.counters)
        logger.info("reload: %d rows of the counters file are in use", loaded.counters.usable)

    def _wanted(self) -> tuple[WantedField, ...]:
        """What the reader process is to read now."""
        return self._pause.wanted(wanted_at(self._config.pace, self._counters))

    def _start_reader(self) -> Reader:
        """The source of device readings; its process starts with the first read."""
        config = self._config
        return Reader(
            ReaderConfig(
                source=config.source,
                fields=self._wanted(),
                interval=config.interval,
                remote=config.remote,
                scenario=str(config.scenario) if config.scenario else None,
                libdcgm=str(config.libdcgm) if config.libdcgm else None,
                bindings=str(config.bindings) if config.bindings else None,
                selections=config.selections,
                processes=config.processes.read and (config.source == "simulated" or config.reads_this_machine),
            ),
            command=(*COMMAND, config.log.format, "debug" if config.log.debug else "info"),
        )

    def _build(self, counters: Counters) -> NodePipeline:
        config = self._config
        state = self._keeper.load() if self._keeper is not None else None
        return NodePipeline(
            open_sources(config, self._reader),
            counters,
            config.style,
            config.attribution_rules,
            self._expected_gpus,
            interval=config.interval,
            windows=config.windows,
            state=state,
            selection=config.devices,
            normalized=config.normalized,
            pods=config.pods,
            virtual_gpus=config.processes.virtual_gpus,
            replicas=lambda: replica_sharing(config.replicas, config.mps_root),
            audit=self._audit,
        )

    def _expected_gpus(self) -> int:
        if not self._config.reads_this_machine:
            return self._config.expected_gpus
        return max(self._config.expected_gpus, self._pci.count_gpus())


def state_keeper(config: NodeConfig) -> StateKeeper | None:
    """The keeper of the configured state file, if there is one."""
    if config.state_file is None:
        return None
    return StateKeeper(config.state_file, simulated=config.source == "simulated")


def run(config: NodeConfig, environment: MutableMapping[str, str]) -> bool:
    """Serve until SIGTERM; returns False when the HTTP server ended by itself.

    Raises ConfigError, ListenError, TlsError or ConfigFileError before anything runs.
    """
    program = NodeProgram(config)
    metrics = ExporterMetrics({"node": config.style.hostname}, config=lambda: program.config_state)
    loop = CollectionLoop(program.collect, metrics, config.interval)
    endpoints = ProgramEndpoints(loop, program.restart_needed, program.unready, program.unhealthy)
    hostname = config.style.hostname
    server = serve(
        "gpugauge node exporter", config.web, endpoints, environment, lambda collected: node_page(collected, hostname)
    )
    return run_until_signaled(loop, server, program.close, program.reload)
