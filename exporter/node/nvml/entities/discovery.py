"""Discovery of one GPU: its identity and the MIG devices that NVML has now.

MIG devices are listed again in every collection: a reconfiguration invalidates their handles, and NVML does not report
one. NVML lists a GPU instance only through its compute instances; a GPU instance without any is not seen.
"""

import re
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import pynvml

from exporter.node.devices.entities.architecture import architecture_name
from exporter.node.devices.entities.device import Device
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.nvml.native.values import INVALID_ARGUMENT, NOT_FOUND, escaped, rejected

_PROFILE = re.compile(r"\bMIG (\S+)$")
"""The profile at the end of a MIG device's name: `NVIDIA H100 80GB HBM3 MIG 1g.10gb`."""

_COMPUTE_PREFIX = re.compile(r"^\d+c\.")
"""What a compute instance that is smaller than its GPU instance has before the profile of that one: `1c.`"""


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """A device of the inventory, with NVML's handle of it and that of its GPU (the same for a GPU)."""

    device: Device
    handle: Any
    gpu_handle: Any


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What does not change of a GPU, and the names of its texts that are not UTF-8."""

    device: Device
    unreadable: tuple[str, ...]


@dataclass(slots=True)
class DiscoveredGpu:
    """A GPU that NVML has, with its MIG devices."""

    devices: list[NvmlDevice]
    """The GPU first."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """(reason, message) of what NVML lists but cannot be read."""

    @property
    def uuid(self) -> str:
        return self.devices[0].device.uuid


@dataclass(frozen=True, slots=True)
class _ComputeInstance:
    """A compute instance, which NVML calls a MIG device."""

    gi: int
    ci: int
    uuid: str
    handle: Any


def discover_gpu(index: int, driver_version: str, known: MutableMapping[str, GpuFacts]) -> DiscoveredGpu:
    """Discover the GPU with this NVML index; `known` has the facts by UUID, and is added to.

    Raises NVMLError when the GPU cannot be opened, GpuLostError, or SourceError when the library as a whole fails.
    """
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    uuid = escaped(pynvml.nvmlDeviceGetUUID, handle)
    facts = known.get(uuid)
    if facts is None or (facts.device.index, facts.device.driver_version) != (index, driver_version):
        facts = known[uuid] = _read_facts(uuid, index, handle, driver_version)
    found = DiscoveredGpu([])
    found.devices += _devices(facts.device, handle, found.problems)
    if facts.unreadable:
        texts = ", ".join(facts.unreadable)
        found.problems.append((NvmlReason.TEXT_UNREADABLE, f"of {uuid} is not UTF-8: {texts}"))
    return found


def _optional(function: Callable[[Any], Any], handle: Any, otherwise: Any) -> Any:
    """Read what not every GPU or driver has. Raises GpuLostError, or SourceError when the library as a whole fails."""
    try:
        return function(handle)
    except pynvml.NVMLError as error:
        rejected(error.value)
        return otherwise


def _read_facts(uuid: str, index: int, handle: Any, driver_version: str) -> GpuFacts:
    """Read what does not change. A text that is not UTF-8 is left empty."""
    unreadable = ["UUID"] if "\\" in uuid else []  # as `escaped` gives it

    def text(name: str, function: Callable[[Any], str]) -> str:
        try:
            return str(_optional(function, handle, ""))
        except UnicodeDecodeError:
            unreadable.append(name)
            return ""

    device = Device(
        uuid=uuid,
        index=index,
        pci_bus_id=text("PCI id", _bus_id),
        minor=_optional(pynvml.nvmlDeviceGetMinorNumber, handle, -1),
        model=text("name", pynvml.nvmlDeviceGetName),
        serial=text("serial number", pynvml.nvmlDeviceGetSerial),
        architecture=architecture_name(_optional(pynvml.nvmlDeviceGetArchitecture, handle, 0)),
        driver_version=driver_version,
        numa_node=_optional(pynvml.nvmlDeviceGetNumaNodeId, handle, -1),
    )
    return GpuFacts(device, tuple(unreadable))


def _bus_id(handle: Any) -> str:
    return str(pynvml.nvmlDeviceGetPciInfo(handle).busId).upper()


def _devices(gpu: Device, handle: Any, problems: list[tuple[str, str]]) -> list[NvmlDevice]:
    """Return the GPU and, in MIG mode, its GPU instances with their compute instances."""
    mode = _optional(pynvml.nvmlDeviceGetMigMode, handle, None)  # (current, pending)
    enabled = None if mode is None else mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    gpu = msgspec.structs.replace(gpu, mig_enabled=enabled)
    by_gi: dict[int, list[_ComputeInstance]] = {}
    for compute_instance in _compute_instances(gpu, handle, problems) if enabled else ():
        by_gi.setdefault(compute_instance.gi, []).append(compute_instance)
    devices = [NvmlDevice(gpu, handle, handle)]
    for gi in sorted(by_gi):
        devices += _gpu_instance(gpu, handle, sorted(by_gi[gi], key=lambda each: each.ci))
    return devices


def _gpu_instance(gpu: Device, gpu_handle: Any, compute_instances: list[_ComputeInstance]) -> Iterator[NvmlDevice]:
    """Yield a GPU instance and, where several share it, its compute instances."""
    first = compute_instances[0]
    profile = _COMPUTE_PREFIX.sub("", _profile(first.handle))
    uuids = tuple(each.uuid for each in compute_instances)
    device = msgspec.structs.replace(gpu, gi=first.gi, profile=profile, mig_uuids=uuids)
    # Compute instances share the memory of their GPU instance: the handle of any of them gives it.
    yield NvmlDevice(device, first.handle, gpu_handle)
    for each in compute_instances if len(compute_instances) > 1 else ():
        own = msgspec.structs.replace(device, ci=each.ci, profile=_profile(each.handle), mig_uuids=(each.uuid,))
        yield NvmlDevice(own, each.handle, gpu_handle)


def _compute_instances(gpu: Device, handle: Any, problems: list[tuple[str, str]]) -> Iterator[_ComputeInstance]:
    codes: set[int] = set()
    for index in range(_optional(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle, 0)):
        try:
            yield _compute_instance(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
        except pynvml.NVMLError as error:
            codes.add(error.value)
    # NVML's indexes have holes ("not found"), and an instance can be destroyed between two calls ("invalid argument").
    for code in sorted(codes - {NOT_FOUND, INVALID_ARGUMENT}):
        rejected(code)  # raises GpuLostError when the GPU is lost
        problems.append((NvmlReason.MIG_UNREADABLE, f"MIG devices of {gpu.uuid} cannot be read: return code {code}"))


def _compute_instance(handle: Any) -> _ComputeInstance:
    return _ComputeInstance(
        gi=pynvml.nvmlDeviceGetGpuInstanceId(handle),
        ci=pynvml.nvmlDeviceGetComputeInstanceId(handle),
        uuid=escaped(pynvml.nvmlDeviceGetUUID, handle),
        handle=handle,
    )


def _profile(handle: Any) -> str:
    """Return `1g.10gb` or `1c.2g.20gb`: from the name of the MIG device, else from its slices and memory."""
    match = _PROFILE.search(_optional(partial(escaped, pynvml.nvmlDeviceGetName), handle, ""))
    if match:
        return match[1]
    attributes = _optional(pynvml.nvmlDeviceGetAttributes, handle, None)
    if attributes is None:
        return ""
    return f"{attributes.gpuInstanceSliceCount}g.{round(attributes.memorySizeMB / 1024)}gb"
