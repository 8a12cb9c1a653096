"""The kubelet of a scenario: who holds what at the moment that is being played, without any kubelet."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class SimulatedHolders:
    """A source of allocations; `begin` and `clock` are Unix seconds."""

    scenario: Scenario
    begin: float
    clock: Callable[[], float] = time.time
    name: str = "kubelet"

    def read(self) -> Allocations:
        """The allocations now, as a kubelet would list them."""
        held = self.scenario.at(self.clock() - self.begin).holders
        return tuple(
            sorted(
                Allocation(holder.namespace, holder.pod, holder.container, holder.resource, device)
                for holder in held
                for device in holder.devices
            )
        )

    def close(self) -> None:
        """Nothing is held open."""
