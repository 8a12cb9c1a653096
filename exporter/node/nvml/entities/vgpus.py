"""Reads the vGPUs of one GPU of a vGPU host (a hypervisor), each as an entity with fields of its own.

A vGPU has a number and no handle. Whatever a call about one returns concerns that vGPU alone, also the codes that of a
GPU would end the session: "driver not loaded" is said of the driver in its virtual machine (DCGM 4.6.0, source). Where
no field of vGPUs is wanted, nothing is asked. Of DCGM's fields of vGPUs, NVML has no call for the name of the virtual
machine (521); 501 to 505, 509 to 513 and 528 to 531 are structures, which are not exposed.
"""

import ctypes
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

from exporter.node.devices.fields import field_ids
from exporter.node.devices.readings.readings import RejectionReason
from exporter.node.nvml.calls.calls import NvmlCall
from exporter.node.nvml.entities.discovery import DiscoveredGpu
from exporter.node.nvml.native.reasons import NvmlReason
from exporter.node.nvml.native.values import (
    FUNCTION_NOT_FOUND,
    NONE_32,
    NOT_SUPPORTED,
    REASONS,
    NvmlValue,
    RawValue,
    RejectedValue,
    escaped,
    nvml_value,
    rejected,
)

MAX_VGPUS = 128
"""How many vGPUs of one GPU are read; the largest number that NVIDIA names for one is 48 (vGPU 19)."""
LIST_ATTEMPTS = 3
"""How often the vGPUs are listed when some are created between the two calls that a list consists of."""
NOT_KNOWN = frozenset({"Not Available", "00000000:00:00.0"})
"""Texts of the driver while the virtual machine has not told it the fact: no driver runs in it yet (DCGM 4.6.0)."""
LICENSE_STATES: Mapping[int, str] = {
    pynvml.NVML_GRID_LICENSE_STATE_UNINITIALIZED: "Unlicensed",
    pynvml.NVML_GRID_LICENSE_STATE_UNLICENSED_UNRESTRICTED: "Unlicensed (Unrestricted)",
    pynvml.NVML_GRID_LICENSE_STATE_UNLICENSED_RESTRICTED: "Unlicensed (Restricted)",
    pynvml.NVML_GRID_LICENSE_STATE_UNLICENSED: "Unlicensed",
    pynvml.NVML_GRID_LICENSE_STATE_LICENSED: "Licensed",
}
"""States as DCGM spells them, without the time at which a license expires: it changes with each renewal."""
Utilization = tuple[int, int, int, int]
"""Of SMs, framebuffer, video encoder and video decoder, in percent."""


@dataclass(frozen=True, slots=True)
class VgpuReadings:
    """What was read of one vGPU."""

    number: int
    uuid: str
    """Empty where it cannot be read."""
    values: dict[int, NvmlValue]
    """By field."""
    utilization: Utilization | None = None
    """None where there is no sample since the read before."""


def _vm_id(vgpu: int) -> tuple[RawValue]:
    text, _ = pynvml.nvmlVgpuInstanceGetVmID(vgpu)  # a UUID, or with Xen the number of a domain
    return (text.decode(),)


def _driver_version(vgpu: int) -> tuple[RawValue]:
    return (_known(pynvml.nvmlVgpuInstanceGetVmDriverVersion(vgpu)),)


def _pci_id(vgpu: int) -> tuple[RawValue]:
    return (_known(pynvml.nvmlVgpuInstanceGetGpuPciId(vgpu)),)


def _known(text: str) -> str:
    return "" if text in NOT_KNOWN else text


def _memory_used(vgpu: int) -> tuple[RawValue]:
    # The function fills 64 bits (nvml.h); nvmlVgpuInstanceGetFbUsage of pynvml gives it 32 and returns those.
    function = getattr(pynvml.nvmlLib, "nvmlVgpuInstanceGetFbUsage", None)
    if function is None:
        raise pynvml.NVMLError(FUNCTION_NOT_FOUND)
    used = ctypes.c_ulonglong()
    code = function(ctypes.c_uint(vgpu), ctypes.byref(used))
    if code:
        raise pynvml.NVMLError(code)
    return (used.value,)


def _license(vgpu: int) -> tuple[RawValue]:
    state = pynvml.nvmlVgpuInstanceGetLicenseInfo_v2(vgpu).currentState
    return (LICENSE_STATES.get(state, ""),)  # a blank while it is not known


def _gpu_instance(vgpu: int) -> tuple[RawValue | None]:
    number: int = pynvml.nvmlVgpuInstanceGetGpuInstanceId(vgpu)
    return (None if number == NONE_32 else number,)  # on a GPU without GPU instances there is none


CALLS: tuple[NvmlCall, ...] = (
    NvmlCall((field_ids.VGPU_VM_ID,), _vm_id),
    NvmlCall((field_ids.VGPU_TYPE,), lambda vgpu: (pynvml.nvmlVgpuInstanceGetType(vgpu),)),
    NvmlCall((field_ids.VGPU_UUID,), lambda vgpu: (pynvml.nvmlVgpuInstanceGetUUID(vgpu),)),
    NvmlCall((field_ids.VGPU_DRIVER_VERSION,), _driver_version),
    NvmlCall((field_ids.VGPU_MEMORY_USAGE,), _memory_used),
    # Not supported while the vGPU scheduler limits the share of time instead.
    NvmlCall((field_ids.VGPU_FRAME_RATE_LIMIT,), lambda vgpu: (pynvml.nvmlVgpuInstanceGetFrameRateLimit(vgpu),)),
    NvmlCall((field_ids.VGPU_INSTANCE_LICENSE_STATE,), _license),
    NvmlCall((field_ids.VGPU_PCI_ID,), _pci_id),
    NvmlCall((field_ids.VGPU_VM_GPU_INSTANCE_ID,), _gpu_instance),
)
READ_FIELDS = frozenset(field for call in CALLS for field in call.fields)
"""Every field of a vGPU that the source reads."""


class VgpuReader:
    """Reads the vGPUs of one GPU in one session. For one thread at a time."""

    def __init__(self) -> None:
        self._seen = 0
        """The time of the newest sample of utilization, in µs by the driver's clock."""

    def read(self, gpu: DiscoveredGpu, fields: Collection[int]) -> Iterator[VgpuReadings]:
        """Yield these fields of every vGPU of a GPU; none on a GPU of which the driver makes no vGPUs.

        What is wrong is added to its problems. Raises GpuLostError, or SourceError when NVML as a whole fails.
        """
        numbers = _listed(gpu)
        if len(numbers) > MAX_VGPUS:
            message = f"of {len(numbers)} vGPUs of {gpu.uuid} {MAX_VGPUS} are read"
            gpu.problems.append((NvmlReason.VGPUS_LEFT_OUT, message))
        used = self._utilization(gpu) if numbers else {}
        for number in numbers[:MAX_VGPUS]:
            try:
                uuid = escaped(pynvml.nvmlVgpuInstanceGetUUID, number)
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_NOT_FOUND:
                    continue  # it has ended since it was listed
                uuid = ""
            values: dict[int, NvmlValue] = dict.fromkeys(fields, RejectedValue(RejectionReason.NOT_SUPPORTED))
            for call in CALLS:
                if not values.keys().isdisjoint(call.fields):
                    values |= _read(call, number)
            yield VgpuReadings(number, uuid, values, used.get(number))

    def _utilization(self, gpu: DiscoveredGpu) -> dict[int, Utilization]:
        """Return the newest sample of each vGPU since the last call; a call that fails costs the samples alone."""
        try:
            samples = pynvml.nvmlDeviceGetVgpuUtilization(gpu.devices[0].gpu_handle, self._seen)
        except pynvml.NVMLError as error:  # "not found" where there is none
            rejected(error.value)  # raises where it concerns the GPU or the library
            return {}
        newest = sorted((each for each in samples if each.timeStamp > self._seen), key=lambda each: each.timeStamp)
        self._seen = newest[-1].timeStamp if newest else self._seen
        return {each.vgpuInstance: _percentages(each) for each in newest}


def _percentages(sample: Any) -> Utilization:
    # The driver says that they are unsigned int (nvmlDeviceGetVgpuUtilization in nvml.h).
    return sample.smUtil.uiVal, sample.memUtil.uiVal, sample.encUtil.uiVal, sample.decUtil.uiVal


def _listed(gpu: DiscoveredGpu) -> list[int]:
    code = 0
    for _ in range(LIST_ATTEMPTS):
        try:
            return list(pynvml.nvmlDeviceGetActiveVgpus(gpu.devices[0].gpu_handle))
        except pynvml.NVMLError as error:
            code = error.value
            if code != pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
                break
    if code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
        rejected(code)  # raises where it concerns the GPU or the library
        message = f"the vGPUs of {gpu.uuid} cannot be listed: return code {code}"
        gpu.problems.append((NvmlReason.VGPUS_UNREADABLE, message))
    return []


def _read(call: NvmlCall, number: int) -> dict[int, NvmlValue]:
    try:
        raws = call.function(number)
    except pynvml.NVMLError as error:
        return dict.fromkeys(call.fields, RejectedValue(REASONS.get(error.value, RejectionReason.BLANK)))
    except UnicodeDecodeError:
        return dict.fromkeys(call.fields, RejectedValue(RejectionReason.BLANK))
    return {field: nvml_value(field, raw) for field, raw in zip(call.fields, raws, strict=True)}
