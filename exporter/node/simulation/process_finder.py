"""Finds the processes of a scenario in its pods, without /proc."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from exporter.node.attribution.matching.attribute import PodContainer
from exporter.node.devices.readings.processes import ProcessReadings
from exporter.node.pods.pod import NodePods
from exporter.node.processes.cgroup import ContainerPlace
from exporter.node.processes.known_containers import KnownContainers
from exporter.node.processes.proc_folder import NoContainer, Place
from exporter.node.processes.use import ProcessPlaces
from exporter.node.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ScenarioProcessFinder:
    """A ProcessFinder; `begin` (when the scenario began) and `clock` are in Unix seconds.

    Uids and ids are names here: nothing of a scenario has any.
    """

    scenario: Scenario
    begin: float
    clock: Callable[[], float] = time.time

    def find(self, processes: ProcessReadings, pods: NodePods | None) -> ProcessPlaces:
        """Return the places of these processes; a scenario says itself which pods there are."""
        del pods
        state = self.scenario.at(self.clock() - self.begin)
        specs = [each.spec for each in state.processes]
        containers = {(each.namespace, each.pod, each.container) for each in specs if each.pod}
        containers |= {(each.namespace, each.pod, each.container) for each in state.allocations}
        own = {each[:2]: PodContainer(*each[:2], "") for each in containers}
        known = KnownContainers(
            {"/".join(pod): container for pod, container in own.items()},
            {ContainerPlace("/".join(each[:2]), "/".join(each)): PodContainer(*each) for each in containers},
            frozenset(containers),
        )
        places: dict[int, Place] = {
            process.pid: NoContainer.ENDED for gpu in processes.gpus for process in gpu.processes
        }
        for each in specs:
            place = ContainerPlace(f"{each.namespace}/{each.pod}", f"{each.namespace}/{each.pod}/{each.container}")
            places[each.pid] = place if each.pod else NoContainer.HOST
        return ProcessPlaces(places, known)
