"""Uses what is known of ResourceClaims (DRA) in each collection: for attribution, and as labels of devices.

The labels are those of dcgm-exporter.
"""

from collections.abc import Iterator

from exporter.metric import LabelPairs
from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.matching.attribute import Attribution, DeviceClaim
from exporter.node.attribution.matching.device_id import device_key
from exporter.node.devices.entities.device import Device
from exporter.node.dra.knowledge import NO_KNOWLEDGE, DraKnowledge, KnownClaims
from exporter.node.dra.resource_claims import ClaimId, WantedClaims
from exporter.node.dra.resource_slices import ClaimableKey
from exporter.snapshot import SourceHealth

CLAIM_LABELS = (
    "dra_claim_name",
    "dra_claim_namespace",
    "dra_driver_name",
    "dra_pool_name",
    "dra_device_name",
    "dra_mig_profile",
    "dra_mig_device_uuid",
)


class DeviceClaims:
    """What is known of claims. Without a source, which is the default, that is what the names of devices show."""

    def __init__(self, source: KnownClaims | None, *, labels: bool) -> None:
        """`labels`: whether series may have labels of the allocation at all."""
        self._source = source
        self.names = CLAIM_LABELS if source is not None and labels else ()
        """The names of the labels that `labeled` may add."""

    def knowledge(self, allocations: Allocations | None) -> DraKnowledge:
        """What is known of the claims of these allocations."""
        if self._source is None or allocations is None:
            return NO_KNOWLEDGE
        return self._source.knowledge(claims_of(allocations))

    def labeled(self, rows: list[LabelPairs], attribution: Attribution) -> list[LabelPairs]:
        """Add the labels of its claim to each device that one claim has; `rows` are further labels, per device."""
        if not self.names:
            return rows
        states = zip(rows, attribution.inventory, attribution.states, strict=True)
        return [row if state.claim is None else (*row, *_labels(state.claim, device)) for row, device, state in states]

    def health(self) -> Iterator[SourceHealth]:
        """Of each kind of object that is read from the API server, whether it can be: it is a source of its own."""
        for kind, problem in (self._source.problems if self._source else {}).items():
            yield SourceHealth(kind, problem is None, 0.0, *(problem or ()))

    def close(self) -> None:
        """Close the source; bounded in time."""
        if self._source is not None:
            self._source.close()


def claims_of(allocations: Allocations) -> WantedClaims:
    """The claims of allocations, with the devices of each."""
    found: dict[ClaimId, set[ClaimableKey]] = {}
    for allocation in allocations:
        if allocation.claim.name:
            found.setdefault(allocation.claim[:2], set()).add(device_key(allocation))
    return {claim: frozenset(devices) for claim, devices in found.items()}


def _labels(claim: DeviceClaim, device: Device) -> Iterator[tuple[str, str]]:
    mig_uuid = device.mig_uuids[0] if len(device.mig_uuids) == 1 else ""
    values = claim.name, claim.namespace, claim.driver, claim.pool, claim.device, device.profile, mig_uuid
    return ((name, value) for name, value in zip(CLAIM_LABELS, values, strict=True) if value)
