"""Opens what the node exporter reads beside the reader process, as far as the configuration asks for it.

Libraries that most nodes do without are loaded only here, and only where they are needed.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from exporter.config import ConfigError
from exporter.gpu_names import gpu_resources
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.jobs.hpc_job_files import JobFilesReader
from exporter.node.attribution.offer.reader import OfferReader
from exporter.node.config import NodeConfig
from exporter.node.devices.readings.readings import Readings
from exporter.node.dra.knowledge import KnownClaims
from exporter.node.pipeline import NodeSources
from exporter.node.pods.known_pods import KnownPods
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.node.processes.proc_folder import ProcFolder
from exporter.node.processes.source import NodeProcessFinder, ProcessFinder
from exporter.source import Source

if TYPE_CHECKING:
    from exporter.node.simulation.scenario import Scenario


def open_sources(config: NodeConfig, devices: Source[Readings]) -> NodeSources:
    """The sources of this configuration. Raises ConfigError for a scenario that cannot be used."""
    kubelet, offer = _kubelet(config)
    jobs = JobFilesReader(config.jobs_folder) if config.jobs_folder else None
    return NodeSources(devices, kubelet, jobs, _pods(config), process_finder(config), offer, _claims(config))


def _pods(config: NodeConfig) -> KnownPods | None:
    """The pods of this node where they are asked for."""
    if config.pods.source == "off":
        return None
    from exporter.node.pods.sources import pods_of_node  # noqa: PLC0415 - most nodes need no HTTP client

    gpus = gpu_resources(config.resource_names)
    return pods_of_node(config.pods, config.service_account, config.style.hostname, gpus)


def _claims(config: NodeConfig) -> KnownClaims | None:
    """What the API server knows of devices of ResourceClaims, where that is asked for."""
    if not config.dra:
        return None
    from exporter.node.dra.reader import DraReader  # noqa: PLC0415 - it brings an HTTP client, as above

    reader = DraReader(config.service_account, config.style.hostname)
    reader.start()
    return reader


def _kubelet(config: NodeConfig) -> tuple[Source[Allocations] | None, OfferReader | None]:
    """The kubelet with `--kubernetes`; else, for the simulated source, the allocations of its scenario.

    What the kubelet offers to pods is asked of a real one alone.
    """
    if config.kubernetes:
        # gRPC and protobuf hold 10 MiB: an exporter that does not ask the kubelet goes without them.
        from exporter.node.attribution.kubelet.client import Kubelet, offer_reader  # noqa: PLC0415 - see above

        kubelet = Kubelet(Path(config.kubelet_socket), gpu_resources(config.resource_names))
        return kubelet, offer_reader(kubelet)
    if config.source != "simulated":
        return None, None
    from exporter.node.simulation.kubelet import ScenarioKubelet  # noqa: PLC0415 - for simulated nodes only

    scenario = _scenario(config)
    return ScenarioKubelet(scenario, scenario.begins(time.time())), None


def process_finder(config: NodeConfig, place: Callable[[Path], Path] = lambda path: path) -> ProcessFinder | None:
    """Finds the pods of processes, where that is asked for: on this node, or in the simulated source's scenario.

    `place` gives where a path of the node is.
    """
    if not config.processes.read:
        return None
    if config.source == "simulated":
        from exporter.node.simulation.process_finder import ScenarioProcessFinder  # noqa: PLC0415 - as above

        scenario = _scenario(config)
        return ScenarioProcessFinder(scenario, scenario.begins(time.time()))
    mounted = config.processes.host_proc
    folder = ProcFolder(place(mounted) if mounted is not None else None, place(Path("/proc")))
    return NodeProcessFinder(folder, ContainerLogLinks(place(config.processes.container_log_links)))


def _scenario(config: NodeConfig) -> "Scenario":
    from exporter.node.simulation.scenario import ScenarioError, load  # noqa: PLC0415 - for simulated nodes only

    try:
        return load(str(config.scenario) if config.scenario else None)
    except ScenarioError as error:
        raise ConfigError(str(error)) from None
