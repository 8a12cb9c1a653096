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
from typing import TYPE_CHECKING

from exporter.collection_loop import CollectionLoop
from exporter.config import ConfigError
from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.gpu_names import gpu_resources
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.hpc_job_files import JobFilesReader
from exporter.node.attribution.mps import replica_sharing
from exporter.node.attribution.offer_reader import OfferReader
from exporter.node.audit.start import start_audit_log
from exporter.node.config import NodeConfig
from exporter.node.counters_source import counters_source
from exporter.node.counters_watch import (
    LOGGED_PROBLEMS,
    LoadedCounters,
    UnusableCountersError,
)
from exporter.node.devices.counters_file import Counters
from exporter.node.devices.device_source import ReaderConfig, WantedField
from exporter.node.devices.pci import PciBus
from exporter.node.devices.watch_intervals import mismatches, wanted_at
from exporter.node.dra.knowledge import KnownClaims
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.pods.known_pods import KnownPods
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.node.processes.proc_folder import ProcFolder
from exporter.node.processes.source import NodeProcessFinder, ProcessFinder
from exporter.node.profiling_pause import ProfilingPause
from exporter.node.reader.supervisor import COMMAND, Reader
from exporter.node.restart_need import DRIVER, RestartNeed
from exporter.node.state_file.keeper import StateKeeper
from exporter.node.status import node_page
from exporter.program import ProgramEndpoints, run_until_signaled, serve
from exporter.snapshot import Snapshot
from exporter.source import Source

if TYPE_CHECKING:
    from exporter.node.simulation.scenario import Scenario

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
        jobs = JobFilesReader(config.jobs_folder) if config.jobs_folder else None
        kubelet, offer = self._kubelet()
        sources = NodeSources(self._reader, kubelet, jobs, self._pods(), self._processes(), offer, self._claims())
        state = self._keeper.load() if self._keeper is not None else None
        return NodePipeline(
            sources,
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

    def _pods(self) -> KnownPods | None:
        """The pods of this node where they are asked for."""
        config = self._config
        if config.pods.source == "off":
            return None
        from exporter.node.pods.sources import pods_of_node  # noqa: PLC0415 - most nodes need no HTTP client

        gpus = gpu_resources(config.resource_names)
        return pods_of_node(config.pods, config.service_account, config.style.hostname, gpus)

    def _claims(self) -> KnownClaims | None:
        """What the API server knows of devices of ResourceClaims, where that is asked for."""
        config = self._config
        if not config.dra:
            return None
        from exporter.node.dra.reader import DraReader  # noqa: PLC0415 - it brings an HTTP client, as above

        reader = DraReader(config.service_account, config.style.hostname)
        reader.start()
        return reader

    def _kubelet(self) -> tuple[Source[Allocations] | None, OfferReader | None]:
        """The kubelet with `--kubernetes`; else, for the simulated source, the allocations of its scenario.

        What the kubelet offers to pods is asked of a real one alone.
        """
        config = self._config
        if config.kubernetes:
            # gRPC and protobuf hold 10 MiB: an exporter that does not ask the kubelet goes without them.
            from exporter.node.attribution.kubelet import Kubelet, offer_reader  # noqa: PLC0415 - see above

            kubelet = Kubelet(Path(config.kubelet_socket), gpu_resources(config.resource_names))
            return kubelet, offer_reader(kubelet)
        if config.source != "simulated":
            return None, None
        from exporter.node.simulation.kubelet import ScenarioKubelet  # noqa: PLC0415 - for simulated nodes only

        scenario = _scenario(config)
        return ScenarioKubelet(scenario, scenario.begins(time.time())), None

    def _processes(self) -> ProcessFinder | None:
        """Finds the pods of processes, where that is asked for: on this node, or in the simulated source's scenario."""
        config = self._config
        if not config.processes.read:
            return None
        if config.source == "simulated":
            from exporter.node.simulation.process_finder import ScenarioProcessFinder  # noqa: PLC0415 - as above

            scenario = _scenario(config)
            return ScenarioProcessFinder(scenario, scenario.begins(time.time()))
        folder, links = ProcFolder(config.processes.host_proc), ContainerLogLinks(config.processes.container_log_links)
        return NodeProcessFinder(folder, links)

    def _expected_gpus(self) -> int:
        if not self._config.reads_this_machine:
            return self._config.expected_gpus
        return max(self._config.expected_gpus, self._pci.count_gpus())


def _scenario(config: NodeConfig) -> "Scenario":
    from exporter.node.simulation.scenario import ScenarioError, load  # noqa: PLC0415 - for simulated nodes only

    try:
        return load(str(config.scenario) if config.scenario else None)
    except ScenarioError as error:
        raise ConfigError(str(error)) from None


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
