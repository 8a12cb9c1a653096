"""The source `kubelet` of a simulated node: returns the allocations of a scenario, without a kubelet or a socket."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from exporter.node.attribution.allocation import Allocation, Allocations
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
        return tuple(
            sorted(
                Allocation(allocation.namespace, allocation.pod, allocation.container, allocation.resource, device_id)
                for allocation in allocations
                for device_id in allocation.devices
            )
        )

    def close(self) -> None:
        """Do nothing: there is no connection."""
