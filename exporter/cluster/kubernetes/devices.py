"""DRA objects: what is decoded of DeviceClasses, ResourceSlices, ResourceClaims and their templates, and their records.

Versions v1, v1beta2 and v1beta1 of resource.k8s.io differ in where the fields of a device and of a request are.
"""

import re
from collections.abc import Iterable
from sys import intern
from typing import Any

import msgspec

from exporter.api_objects.wire import ObjectMeta
from exporter.cluster.kubernetes.quantity import amount
from exporter.cluster.kubernetes.records import Amounts
from exporter.gpu_names import GPU_DRIVER, GpuResources, is_gpu_class

_DRIVER = re.compile(r"device\.driver\s*==\s*[\"']([^\"']+)[\"']", re.ASCII)
_TYPE = re.compile(r"\.type\s*==\s*[\"']([^\"']+)[\"']", re.ASCII)
_KEEPING_AWAY = frozenset({"NoSchedule", "NoExecute"})

CounterAmounts = tuple[tuple[str, str, int], ...]
"""(set, counter, thousandths): what the devices of one GPU share, such as the places of MIG devices in its memory."""


class DeviceClass(msgspec.Struct, frozen=True, gc=False):
    """A DeviceClass. Of its selectors only the usual comparisons are understood: of the driver and of the type."""

    name: str
    gpus: bool
    """Whether its devices are GPUs, as far as its name, its selectors and its resource show."""
    resource: str = ""
    """The resource name under which pods can ask for its devices; empty where there is none."""
    drivers: frozenset[str] = frozenset()
    """Empty: any driver."""
    types: frozenset[str] = frozenset()
    """Values of the attribute `type`; empty: any."""


class ClaimableDevice(msgspec.Struct, frozen=True, gc=False):
    """A device of a ResourceSlice."""

    name: str
    type: str
    tainted: bool
    """Whether a taint keeps pods off the device."""
    consumes: CounterAmounts = ()
    """What it takes of its pool's shared counters while it is allocated, so that devices can exclude each other."""


class ResourceSlice(msgspec.Struct, frozen=True, gc=False):
    """Devices of one driver on one node. Of a pool only the slices of its newest generation count."""

    driver: str
    pool: str
    generation: int
    node: str
    devices: tuple[ClaimableDevice, ...]
    counters: CounterAmounts = ()
    """Shared counters of the pool."""


class ResourceClaim(msgspec.Struct, frozen=True, gc=False):
    """A ResourceClaim or a ResourceClaimTemplate."""

    namespace: str
    name: str
    requests: Amounts
    """Devices by DeviceClass, without those that are only to be monitored (admin access)."""
    allocated: tuple[tuple[str, str, str], ...] = ()
    """(driver, pool, device)."""


class _Cel(msgspec.Struct, gc=False):
    expression: str = ""


class _Selector(msgspec.Struct, gc=False):
    cel: _Cel | None = None


class _ClassSpec(msgspec.Struct, gc=False, rename="camel"):
    selectors: list[_Selector] | None = None
    extended_resource_name: str | None = None


class WireDeviceClass(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _ClassSpec | None = None


class _Taint(msgspec.Struct, gc=False):
    effect: str = ""


class _Counter(msgspec.Struct, gc=False):
    value: str | float = 0


class _CounterSet(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    """In a slice's own counters."""
    counter_set: str = ""
    """In what a device consumes."""
    counters: dict[str, _Counter] | None = None


class _Basic(msgspec.Struct, gc=False, rename="camel"):
    attributes: dict[str, Any] | None = None
    taints: list[_Taint] | None = None
    consumes_counters: list[_CounterSet] | None = None


class _Device(_Basic, gc=False, rename="camel"):
    name: str = ""
    basic: _Basic | None = None


class _Pool(msgspec.Struct, gc=False):
    name: str = ""
    generation: int = 0


class _SliceSpec(msgspec.Struct, gc=False, rename="camel"):
    driver: str = ""
    pool: _Pool | None = None
    node_name: str | None = None
    devices: list[_Device] | None = None
    shared_counters: list[_CounterSet] | None = None


class WireResourceSlice(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _SliceSpec | None = None


class _Exact(msgspec.Struct, gc=False, rename="camel"):
    device_class_name: str | None = None
    count: int | None = None
    admin_access: bool | None = None


class _Request(_Exact, gc=False, rename="camel"):
    name: str = ""
    exactly: _Exact | None = None
    first_available: list[_Exact] | None = None


class _Devices(msgspec.Struct, gc=False):
    requests: list[_Request] | None = None


class _ClaimSpec(msgspec.Struct, gc=False):
    devices: _Devices | None = None


class _Result(msgspec.Struct, gc=False, rename="camel"):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class _Results(msgspec.Struct, gc=False):
    results: list[_Result] | None = None


class _Allocation(msgspec.Struct, gc=False):
    devices: _Results | None = None


class _ClaimStatus(msgspec.Struct, gc=False):
    allocation: _Allocation | None = None


class WireResourceClaim(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _ClaimSpec | None = None
    status: _ClaimStatus | None = None


class _TemplateSpec(msgspec.Struct, gc=False):
    spec: _ClaimSpec | None = None


class WireClaimTemplate(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _TemplateSpec | None = None


def device_class(decoded: WireDeviceClass, gpus: GpuResources) -> DeviceClass:
    """Convert a DeviceClass."""
    spec, name = decoded.spec or _ClassSpec(), decoded.metadata.name
    text = " ".join(each.cel.expression for each in spec.selectors or () if each.cel is not None)
    resource = spec.extended_resource_name or ""
    drivers = frozenset(_DRIVER.findall(text))
    found = GPU_DRIVER in text if drivers else is_gpu_class(name)
    return DeviceClass(intern(name), found or resource in gpus, resource, drivers, frozenset(_TYPE.findall(text)))


def resource_slice(decoded: WireResourceSlice) -> ResourceSlice | None:
    """Convert a ResourceSlice of one node; return None for devices that several nodes can reach."""
    spec = decoded.spec or _SliceSpec()
    if not spec.node_name:
        return None
    pool = spec.pool or _Pool()
    devices = tuple(_device(each) for each in spec.devices or ())
    return ResourceSlice(
        intern(spec.driver),
        intern(pool.name),
        pool.generation,
        intern(spec.node_name),
        devices,
        _counters(spec.shared_counters),
    )


def _device(decoded: _Device) -> ClaimableDevice:
    basic = decoded.basic or _Basic()
    attributes = decoded.attributes or basic.attributes or {}
    kind = next((value for key, value in attributes.items() if key.rpartition("/")[2] == "type"), None)
    tainted = any(each.effect in _KEEPING_AWAY for each in decoded.taints or basic.taints or ())
    text = kind.get("string") if isinstance(kind, dict) else None
    consumes = _counters(decoded.consumes_counters or basic.consumes_counters)
    return ClaimableDevice(intern(decoded.name), intern(text if isinstance(text, str) else ""), tainted, consumes)


def _counters(sets: list[_CounterSet] | None) -> CounterAmounts:
    """Read counters. Raises ValueError for one that is no quantity."""
    return tuple(
        (intern(each.name or each.counter_set), intern(name), int(amount(counter.value) * 1000))
        for each in sets or ()
        for name, counter in (each.counters or {}).items()
    )


def resource_claim(decoded: WireResourceClaim) -> ResourceClaim:
    """Convert a ResourceClaim."""
    allocation = decoded.status.allocation if decoded.status else None
    results = (allocation and allocation.devices and allocation.devices.results) or ()
    given = [each for each in results if not each.admin_access]
    meta = decoded.metadata
    return ResourceClaim(
        intern(meta.namespace),
        meta.name,
        _requests(decoded.spec, given),
        tuple((intern(each.driver), intern(each.pool), intern(each.device)) for each in given),
    )


def claim_template(decoded: WireClaimTemplate) -> ResourceClaim:
    """Convert a ResourceClaimTemplate."""
    meta = decoded.metadata
    return ResourceClaim(intern(meta.namespace), meta.name, _requests(decoded.spec.spec if decoded.spec else None, ()))


def _requests(spec: _ClaimSpec | None, results: Iterable[_Result]) -> Amounts:
    """Sum devices by DeviceClass. Of alternatives the first counts, and of `All` devices those that were allocated."""
    sums: dict[str, int] = {}
    allocated = [each.request.partition("/")[0] for each in results]
    for request in (spec.devices.requests if spec and spec.devices else None) or ():
        exact = request.exactly or (request.first_available[0] if request.first_available else request)
        if exact.device_class_name and not exact.admin_access:
            count = exact.count or allocated.count(request.name) or 1
            sums[exact.device_class_name] = sums.get(exact.device_class_name, 0) + count
    return tuple((intern(name), count) for name, count in sorted(sums.items()))
