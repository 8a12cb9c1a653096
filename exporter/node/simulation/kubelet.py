"""The source `kubelet` of a simulated node: returns the allocations of a scenario, without a kubelet or a socket."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exporter.node.attribution.allocation import NO_CLAIM, Allocation, Allocations, ClaimName
from exporter.node.simulation.document import ScenarioAllocation
from exporter.node.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ScenarioKubelet:
    """A source of allocations; `begin` (when the scenario began) and `clock` are in Unix seconds."""

    scenario: Scenario
    begin: float
    clock: Callable[[], float] = time.time
    name: str = "kubelet"

    def read(self) -> Allocations:
        """Return the allocations of this moment, one per device id, as the kubelet lists them."""
        allocations = self.scenario.at(self.clock() - self.begin).allocations
        return tuple(sorted(each for allocation in allocations for each in _listed(allocation)))

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _listed(allocation: ScenarioAllocation) -> Iterator[Allocation]:
    claim = ClaimName(allocation.namespace, allocation.claim) if allocation.claim else NO_CLAIM
    container = allocation.namespace, allocation.pod, allocation.container
    return (Allocation(*container, allocation.resource, device_id, claim=claim) for device_id in allocation.devices)
