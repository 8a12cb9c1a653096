"""The parts of ResourceSlices and ResourceClaims (DRA) that are read, and what differs between versions of their API.

Versions v1, v1beta2 and v1beta1 of resource.k8s.io differ in where the fields of a device and of a request are.
"""

from typing import Any

import msgspec

from exporter.api_objects.wire import ObjectMeta

DRA_GROUP = "resource.k8s.io"
DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Those that are understood, the preferred one first."""


class WireDeviceTaint(msgspec.Struct, gc=False):
    effect: str = ""


class WireCounter(msgspec.Struct, gc=False):
    value: str | float = 0


class WireCounterSet(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    """In a slice's own counters."""
    counter_set: str = ""
    """In what a device consumes."""
    counters: dict[str, WireCounter] | None = None


class WireAboutDevice(msgspec.Struct, gc=False, rename="camel"):
    attributes: dict[str, Any] | None = None
    taints: list[WireDeviceTaint] | None = None
    consumes_counters: list[WireCounterSet] | None = None
    """What it takes of the counters that devices of its slice share, as MIG devices of one GPU do."""
    allow_multiple_allocations: bool | None = None


class WireDevice(WireAboutDevice, gc=False, rename="camel"):
    name: str = ""
    basic: WireAboutDevice | None = None
    """v1beta1 has everything but the name in here."""

    def about(self) -> WireAboutDevice:
        """Everything but the name."""
        return self.basic or self

    def text(self, attribute: str) -> str:
        """An attribute that is a text, by its name without a domain; empty where there is none."""
        attributes = self.about().attributes or {}
        found = next((value for key, value in attributes.items() if key.rpartition("/")[2] == attribute), None)
        text = found.get("string") if isinstance(found, dict) else None
        return text if isinstance(text, str) else ""

    def tainted(self, effects: frozenset[str]) -> bool:
        """Whether it has a taint with one of these effects."""
        return any(each.effect in effects for each in self.about().taints or ())


class WirePool(msgspec.Struct, gc=False):
    name: str = ""
    generation: int = 0


class WireSliceSpec(msgspec.Struct, gc=False, rename="camel"):
    driver: str = ""
    pool: WirePool | None = None
    node_name: str | None = None
    devices: list[WireDevice] | None = None
    shared_counters: list[WireCounterSet] | None = None


class WireResourceSlice(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: WireSliceSpec | None = None


class WireExactRequest(msgspec.Struct, gc=False, rename="camel"):
    """A request for devices of one class; also an alternative of a request."""

    name: str = ""
    device_class_name: str | None = None
    count: int | None = None
    admin_access: bool | None = None


class WireRequest(WireExactRequest, gc=False, rename="camel"):
    exactly: WireExactRequest | None = None
    """v1beta1 has its fields in the request itself."""
    first_available: list[WireExactRequest] | None = None

    def exact(self) -> WireExactRequest:
        """The request itself; of alternatives the first."""
        return self.exactly or (self.first_available[0] if self.first_available else self)


class WireRequests(msgspec.Struct, gc=False):
    requests: list[WireRequest] | None = None


class WireClaimSpec(msgspec.Struct, gc=False):
    devices: WireRequests | None = None

    def requests(self) -> list[WireRequest]:
        return (self.devices and self.devices.requests) or []


class WireResult(msgspec.Struct, gc=False, rename="camel"):
    """A device that was allocated to a claim."""

    request: str = ""
    """Name of the request; of an alternative of one, `<request>/<alternative>`."""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class WireResults(msgspec.Struct, gc=False):
    results: list[WireResult] | None = None


class WireAllocation(msgspec.Struct, gc=False):
    devices: WireResults | None = None


class WireClaimStatus(msgspec.Struct, gc=False):
    allocation: WireAllocation | None = None


class WireResourceClaim(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: WireClaimSpec | None = None
    status: WireClaimStatus | None = None

    def results(self) -> list[WireResult]:
        """The devices that were allocated, also those that are only to be monitored (admin access)."""
        allocation = self.status.allocation if self.status else None
        return (allocation and allocation.devices and allocation.devices.results) or []
