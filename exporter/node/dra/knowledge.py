"""What is known of the devices of ResourceClaims at one moment. No I/O.

Without the API server that is what the names of devices show, which is enough for most of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from exporter.node.dra.device import DraDevice, named
from exporter.node.dra.resource_claims import ClaimedDevice, ClaimFacts, ClaimId, WantedClaims
from exporter.node.dra.resource_slices import ClaimableKey
from exporter.node.service_account.reasons import ApiReason


@dataclass(frozen=True, slots=True)
class DraKnowledge:
    """What ResourceSlices and ResourceClaims show."""

    devices: Mapping[ClaimableKey, DraDevice] = field(default_factory=dict)
    claims: Mapping[ClaimId, ClaimFacts] | None = None
    """Those that were read, by namespace and name; None where claims are not read at all."""

    def device(self, key: ClaimableKey) -> DraDevice:
        """What is known of a device: by its ResourceSlice, else by its name.

        A driver takes a device out of its slices while a pod still uses it, as when it becomes unhealthy (source).
        """
        return self.devices.get(key) or named(key.name)

    def claimed(self, claim: ClaimId, key: ClaimableKey) -> ClaimedDevice | None:
        """How the claim has the device; None where that was not read."""
        found = (self.claims or {}).get(claim)
        return found.devices.get(key) if found is not None else None


NO_KNOWLEDGE = DraKnowledge()


class KnownClaims(Protocol):
    """Where knowledge is from, as attribution uses it. Nothing here waits for more than a moment."""

    def knowledge(self, wanted: WantedClaims) -> DraKnowledge:
        """What is known now; the same object until something changes. `wanted` is what the kubelet lists."""
        ...

    @property
    def problems(self) -> Mapping[str, tuple[ApiReason, str] | None]:
        """By kind of object that is read: (reason, message) while it cannot be."""
        ...

    def close(self) -> None: ...
