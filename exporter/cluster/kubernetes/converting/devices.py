"""DRA objects: what is decoded of DeviceClasses and claim templates, and the records of these, of slices and claims."""

import re
from collections.abc import Iterable
from sys import intern

import msgspec

from exporter.api_objects.device_claims import (
    WireClaimSpec,
    WireCounterSet,
    WireDevice,
    WirePool,
    WireResourceClaim,
    WireResourceSlice,
    WireResult,
    WireSliceSpec,
)
from exporter.api_objects.wire import ObjectMeta
from exporter.cluster.kubernetes.objects.quantity import amount
from exporter.cluster.kubernetes.objects.records import Amounts
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


class _TemplateSpec(msgspec.Struct, gc=False):
    spec: WireClaimSpec | None = None


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
    spec = decoded.spec or WireSliceSpec()
    if not spec.node_name:
        return None
    pool = spec.pool or WirePool()
    devices = tuple(_device(each) for each in spec.devices or ())
    return ResourceSlice(
        intern(spec.driver),
        intern(pool.name),
        pool.generation,
        intern(spec.node_name),
        devices,
        _counters(spec.shared_counters),
    )


def _device(decoded: WireDevice) -> ClaimableDevice:
    kind, tainted = intern(decoded.text("type")), decoded.tainted(_KEEPING_AWAY)
    return ClaimableDevice(intern(decoded.name), kind, tainted, _counters(decoded.about().consumes_counters))


def _counters(sets: list[WireCounterSet] | None) -> CounterAmounts:
    """Read counters. Raises ValueError for one that is no quantity."""
    return tuple(
        (intern(each.name or each.counter_set), intern(name), int(amount(counter.value) * 1000))
        for each in sets or ()
        for name, counter in (each.counters or {}).items()
    )


def resource_claim(decoded: WireResourceClaim) -> ResourceClaim:
    """Convert a ResourceClaim."""
    given = [each for each in decoded.results() if not each.admin_access]
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


def _requests(spec: WireClaimSpec | None, results: Iterable[WireResult]) -> Amounts:
    """Sum devices by DeviceClass. Of alternatives the first counts, and of `All` devices those that were allocated."""
    sums: dict[str, int] = {}
    allocated = [each.request.partition("/")[0] for each in results]
    for request in spec.requests() if spec else ():
        exact = request.exact()
        if exact.device_class_name and not exact.admin_access:
            count = exact.count or allocated.count(request.name) or 1
            sums[exact.device_class_name] = sums.get(exact.device_class_name, 0) + count
    return tuple((intern(name), count) for name, count in sorted(sums.items()))
