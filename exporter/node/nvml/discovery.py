"""Discovery: lists the GPUs and MIG devices that NVML has now, and the known GPUs that cannot be reached.

MIG devices are listed again in every collection: a reconfiguration invalidates their handles, and NVML does not report
one. NVML lists a GPU instance only through its compute instances; a GPU instance without any is not seen.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import pynvml

from exporter.node.devices.architecture import architecture_name
from exporter.node.devices.device import Device
from exporter.node.devices.known_gpus import missing_gpus
from exporter.node.nvml.reasons import NvmlReason
from exporter.node.nvml.values import (
    INVALID_ARGUMENT,
    LOST,
    NO_PERMISSION,
    NOT_FOUND,
    GpuLostError,
    escaped,
    rejected,
    source_error,
)
from exporter.source import SourceError

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


@dataclass(slots=True)
class NvmlDiscovery:
    """The result of one discovery."""

    devices: list[NvmlDevice] = field(default_factory=list)
    """In the order of the inventory. The handles of a GPU that was not listed this time are None."""
    down: set[str] = field(default_factory=set)
    """UUIDs of known GPUs that cannot be reached."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """(reason, message) of what NVML lists but cannot be read."""

    @contextlib.contextmanager
    def costs_only(self, uuid: str) -> Iterator[None]:
        """Run what concerns one GPU: an exception makes that GPU one that cannot be reached. Passes on SourceError."""
        try:
            yield
        except SourceError:
            raise
        except GpuLostError:
            self.down.add(uuid)
        except Exception as error:  # noqa: BLE001 - also a defect costs one GPU, never the others
            self.down.add(uuid)
            self.problems.append((NvmlReason.GPU_FAILED, f"{uuid} cannot be read: {error!r}"))

    @property
    def complete(self) -> bool:
        """Whether a new session with the library could not find more."""
        lasting = all(reason == NvmlReason.TEXT_UNREADABLE for reason, _ in self.problems)
        return bool(self.devices) and not self.down and lasting


@dataclass(frozen=True, slots=True)
class _ComputeInstance:
    """A compute instance, which NVML calls a MIG device."""

    gi: int
    ci: int
    uuid: str
    handle: Any


class NvmlInventory:
    """Discovers devices; remembers every GPU and its MIG devices, so that a lost one keeps its labels."""

    def __init__(self) -> None:
        self._facts: dict[str, Device] = {}
        self._unreadable: dict[str, list[str]] = {}
        """By UUID, what of the GPU's texts is not UTF-8."""
        self._last: dict[str, tuple[Device, ...]] = {}
        self._uuids: dict[int, str] = {}

    def discover(self, driver_version: str) -> NvmlDiscovery:
        """List every device. Raises SourceError when the library as a whole fails."""
        found = NvmlDiscovery()
        for index in range(_required(pynvml.nvmlDeviceGetCount)):
            self._discover_gpu(index, driver_version, found)
        listed = [each.device for each in found.devices]
        missing = missing_gpus({uuid: devices[0] for uuid, devices in self._last.items()}, listed)
        for uuid in missing:
            self._add_lost(uuid, found)
        known = missing.keys() | {device.uuid for device in listed}
        self._last = {uuid: devices for uuid, devices in self._last.items() if uuid in known}
        found.devices.sort(key=lambda each: (each.device.index, each.device.gi, each.device.ci))
        return found

    def _discover_gpu(self, index: int, driver_version: str, found: NvmlDiscovery) -> None:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = escaped(pynvml.nvmlDeviceGetUUID, handle)
            gpu = self._gpu(uuid, index, handle, driver_version)
            devices = _devices(gpu, handle, found.problems)
        except pynvml.NVMLError as error:
            self._report_unreadable(index, error.value, found)
        except GpuLostError:
            self._report_unreadable(index, next(iter(LOST)), found)
        except SourceError:
            raise
        except Exception as error:  # noqa: BLE001 - also a defect costs one GPU, never the others
            message = f"the GPU with NVML index {index} cannot be read: {error!r}"
            found.problems.append((NvmlReason.GPU_FAILED, message))
        else:
            self._uuids[index] = uuid
            self._last[uuid] = tuple(each.device for each in devices)
            found.devices += devices
            if texts := ", ".join(self._unreadable[uuid]):
                found.problems.append((NvmlReason.TEXT_UNREADABLE, f"of {uuid} is not UTF-8: {texts}"))

    def _report_unreadable(self, index: int, code: int, found: NvmlDiscovery) -> None:
        if code not in LOST:
            rejected(code)  # raises SourceError when no GPU can be read
            reason = NvmlReason.NO_PERMISSION if code == NO_PERMISSION else NvmlReason.GPU_UNREADABLE
            found.problems.append((reason, f"the GPU with NVML index {index} cannot be opened: return code {code}"))
        elif index not in self._uuids:
            found.problems.append((NvmlReason.GPU_LOST, f"the GPU with NVML index {index} is lost and was never seen"))

    def _add_lost(self, uuid: str, found: NvmlDiscovery) -> None:
        found.devices += [NvmlDevice(device, None, None) for device in self._last[uuid]]
        found.down.add(uuid)

    def _gpu(self, uuid: str, index: int, handle: Any, driver_version: str) -> Device:
        known = self._facts.get(uuid)
        if known is None or (known.index, known.driver_version) != (index, driver_version):
            unreadable = self._unreadable[uuid] = ["UUID"] if "\\" in uuid else []  # as `escaped` gives it
            known = self._facts[uuid] = _read_gpu(uuid, index, handle, driver_version, unreadable)
        return known


def _required(function: Callable[[], int]) -> int:
    try:
        return function()
    except pynvml.NVMLError as error:
        raise source_error(error.value) from error


def _optional(function: Callable[[Any], Any], handle: Any, otherwise: Any) -> Any:
    """Read what not every GPU or driver has. Raises GpuLostError, or SourceError when the library as a whole fails."""
    try:
        return function(handle)
    except pynvml.NVMLError as error:
        rejected(error.value)
        return otherwise


def _read_gpu(uuid: str, index: int, handle: Any, driver_version: str, unreadable: list[str]) -> Device:
    """Read what does not change. Adds the names of the texts that are not UTF-8, which are left empty, to the list."""

    def text(name: str, function: Callable[[Any], str]) -> str:
        try:
            return str(_optional(function, handle, ""))
        except UnicodeDecodeError:
            unreadable.append(name)
            return ""

    return Device(
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
