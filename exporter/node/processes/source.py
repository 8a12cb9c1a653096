"""The source `processes`: finds where the processes run that NVML lists on the GPUs, once per collection."""

from dataclasses import dataclass
from typing import Protocol

from exporter.node.devices.readings.processes import NAME, ProcessReadings, ProcessReason
from exporter.node.pods.pod import NodePods
from exporter.node.processes.container_log_links import ContainerLogLinks
from exporter.node.processes.known_containers import KnownContainers
from exporter.node.processes.proc_folder import ProcFolder
from exporter.node.processes.use import ProcessPlaces
from exporter.source import SourceError


class ProcessFinder(Protocol):
    """Finds where processes run: on this node, or in a scenario."""

    def find(self, processes: ProcessReadings, pods: NodePods | None) -> ProcessPlaces:
        """Return the places of these processes; `pods` is pod metadata, where there is any. Raises SourceError."""
        ...


@dataclass(slots=True)
class NodeProcessFinder:
    """Finds processes in /proc, and their pods in pod metadata or else among the kubelet's links to logs."""

    folder: ProcFolder
    links: ContainerLogLinks
    _of_pods: tuple[NodePods, KnownContainers] | None = None
    """The last pod metadata and what was made of it: it seldom changes."""

    def find(self, processes: ProcessReadings, pods: NodePods | None) -> ProcessPlaces:
        """Return the places of these processes. Raises SourceError with a reason of `ProcessReason`."""
        self.folder.check()
        known = self.links.read() if pods is None else self._known(pods)
        pids = {process.pid for gpu in processes.gpus for process in gpu.processes}
        return ProcessPlaces(self.folder.places(pids), known, self.folder.shows_every_process())

    def _known(self, pods: NodePods) -> KnownContainers:
        if self._of_pods is None or self._of_pods[0] is not pods:
            self._of_pods = pods, KnownContainers.of_pods(pods)
        return self._of_pods[1]


@dataclass(frozen=True, slots=True)
class ProcessSource:
    """The processes of one collection as a source: `processes` is what the reader process listed, None for nothing."""

    finder: ProcessFinder
    processes: ProcessReadings | None
    pods: NodePods | None
    name: str = NAME

    def read(self) -> ProcessPlaces:
        """Return where the listed processes run. Raises SourceError with a reason of `ProcessReason`."""
        if self.processes is None:
            raise SourceError(ProcessReason.NOT_LISTED, "the reader process has listed no processes")
        if self.processes.problem is not None:
            raise SourceError(*self.processes.problem)
        return self.finder.find(self.processes, self.pods)

    def close(self) -> None:
        """Do nothing: nothing stays open."""
