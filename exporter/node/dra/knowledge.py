"""What is known of the devices of ResourceClaims at one moment. No I/O.

Without the API server that is what the names of devices show, which is enough for most of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.node.dra.device import DraDevice, named
from exporter.node.dra.resource_claims import ClaimedDevice, ClaimFacts
from exporter.node.dra.resource_slices import ClaimableKey


@dataclass(frozen=True, slots=True)
class DraKnowledge:
    """What ResourceSlices and ResourceClaims show."""

    devices: Mapping[ClaimableKey, DraDevice] = field(default_factory=dict)
    claims: Mapping[tuple[str, str], ClaimFacts] | None = None
    """Those that were read, by namespace and name; None where claims are not read at all."""

    def device(self, key: ClaimableKey) -> DraDevice:
        """What is known of a device: by its ResourceSlice, else by its name.

        A driver takes a device out of its slices while a pod still uses it, as when it becomes unhealthy (source).
        """
        return self.devices.get(key) or named(key.name)

    def claimed(self, claim: tuple[str, str], key: ClaimableKey) -> ClaimedDevice | None:
        """How the claim has the device; None where that was not read."""
        found = (self.claims or {}).get(claim)
        return found.devices.get(key) if found is not None else None


NO_KNOWLEDGE = DraKnowledge()
