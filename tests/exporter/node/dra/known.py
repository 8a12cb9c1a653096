"""What the API server shows of the node of the scenario `dra`, without an API server."""

import json
from dataclasses import dataclass, field

from exporter.node.dra.knowledge import DraKnowledge
from exporter.node.dra.resource_claims import resource_claim
from exporter.node.dra.resource_slices import offered_devices, resource_slice
from exporter.node.simulation.scenario import load
from tests.exporter.node.dra.slices import claim_object, device, raw, request_object, slice_object
from tests.exporter.node.scenario_flow import SCENARIOS

MONITORING = "gpu-operator"


@dataclass(frozen=True)
class FixedKnowledge:
    """A source that always knows the same."""

    known: DraKnowledge
    problems: dict = field(default_factory=dict)

    def knowledge(self, wanted):
        return self.known

    def close(self): ...


def of_scenario():
    """The slices of the scenario's GPUs, and its claims: those of the namespace of monitoring have admin access."""
    state = load(SCENARIOS["dra"]).document
    slices = (resource_slice(raw(slice_object(*_devices(gpu)))) for gpu in state.devices)
    claims = {}
    for each in state.allocations:
        admin = each.namespace == MONITORING
        results = [("r", found.rpartition("/")[2], admin) for found in each.devices]
        requests = [request_object("r", "mig.nvidia.com" if "-mig-" in each.devices[0] else "gpu.nvidia.com")]
        found = claim_object(*results, name=each.claim, namespace=each.namespace, requests=requests)
        claims[each.namespace, each.claim] = resource_claim(json.dumps(found).encode())
    return FixedKnowledge(DraKnowledge(offered_devices(filter(None, slices)), claims))


def _devices(gpu):
    if not gpu.mig:
        return [device(f"gpu-{gpu.minor}", type="gpu", uuid=gpu.uuid)]
    starts = {"3g.40gb": [4], "1g.10gb": [0, 1]}
    return [
        device(
            f"gpu-{gpu.minor}-mig-{each.profile.replace('.', '')}-{each.profile_id}-{starts[each.profile].pop(0)}",
            type="mig",
            uuid=each.compute[0].uuid,
            parentUUID=gpu.uuid,
            profile=each.profile,
        )
        for each in gpu.instances
    ]
