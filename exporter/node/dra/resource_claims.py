"""What a ResourceClaim shows of the devices that were allocated to it. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from exporter.api_objects.device_claims import WireClaimSpec, WireRequest, WireResourceClaim
from exporter.node.dra.resource_slices import ClaimableKey

ClaimId = tuple[str, str]
"""Namespace and name."""
WantedClaims = Mapping[ClaimId, frozenset[ClaimableKey]]
"""The devices that the kubelet lists, by claim."""


@dataclass(frozen=True, slots=True)
class ClaimedDevice:
    """A device of a claim."""

    device_class: str = ""
    """The DeviceClass that was asked for; empty where it is not known."""
    monitoring: bool = False
    """Whether the claim has the device for monitoring alone (admin access), beside those that use it."""


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """A claim, as far as attribution needs it."""

    devices: Mapping[ClaimableKey, ClaimedDevice] = field(default_factory=dict)


def resource_claim(body: bytes) -> ClaimFacts:
    """Decode a claim in any version of the API. Raises msgspec.DecodeError and RecursionError.

    A device that two requests of the claim were given, one of them for monitoring, is in use.
    """
    decoded = msgspec.json.decode(body, type=WireResourceClaim)
    requests = {each.name: each for each in (decoded.spec or WireClaimSpec()).requests()}
    devices: dict[ClaimableKey, ClaimedDevice] = {}
    for result in decoded.results():
        key = ClaimableKey(result.driver, result.pool, result.device)
        if key not in devices or devices[key].monitoring:
            devices[key] = ClaimedDevice(_class(result.request, requests), bool(result.admin_access))
    return ClaimFacts(devices)


def _class(request: str, requests: Mapping[str, WireRequest]) -> str:
    """The DeviceClass of a request, or of the alternative of it that was chosen: `<request>/<alternative>`."""
    name, _, alternative = request.partition("/")
    found = requests.get(name)
    if found is None:
        return ""
    chosen = next((each for each in found.first_available or () if each.name == alternative), found.exact())
    return chosen.device_class_name or ""
