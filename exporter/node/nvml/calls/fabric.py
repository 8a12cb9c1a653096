"""Reads a GPU's registration at the NVLink fabric with one NVML call, as DCGM's fields 170 to 175.

The registration is made by the fabric manager or, on systems of several nodes, by IMEX. States and codes are those of
`nvml.h` and of `dcgm_structs.h`; how one becomes the other is as in DCGM (4.6.0, source).
"""

import ctypes
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pynvml

from exporter.node.nvml.native.values import FUNCTION_NOT_FOUND, NONE_64, VERSION_MISMATCH, RawValue

FAILED = 4
"""DCGM's status of a registration that has ended with an error; the others are NVML's states."""
NO_CODE = NONE_64
"""A blank: there is no such fact before the registration has ended."""
DCGM_CODES: Mapping[int, int] = {
    pynvml.NVML_SUCCESS: 0,
    pynvml.NVML_ERROR_INVALID_ARGUMENT: -1,
    pynvml.NVML_ERROR_NOT_SUPPORTED: -6,
    pynvml.NVML_ERROR_TIMEOUT: -11,
    pynvml.NVML_ERROR_NOT_FOUND: -14,
    pynvml.NVML_ERROR_NO_PERMISSION: -17,
    pynvml.NVML_ERROR_GPU_IS_LOST: -18,
    pynvml.NVML_ERROR_RESET_REQUIRED: -19,
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: -49,
    pynvml.NVML_ERROR_UNINITIALIZED: -56,
}
"""NVML's return code -> DCGM's; every other code is DCGM's -8, an error of NVML."""


def fabric(handle: Any) -> tuple[RawValue | None, ...]:
    """Return status, error code, cluster UUID, clique, health mask and health summary: fields 170 to 175.

    UUID and clique are known only of a registration that has succeeded, and the error code only of one that has ended.
    """
    info = _info(handle)
    mask, summary = getattr(info, "healthMask", None), getattr(info, "healthSummary", None)
    match info.state:
        case pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
            return info.state, None, None, None, None, None
        case pynvml.NVML_GPU_FABRIC_STATE_COMPLETED if info.status == pynvml.NVML_SUCCESS:
            return info.state, 0, str(UUID(bytes=bytes(info.clusterUuid))), info.cliqueId, mask, summary
        case pynvml.NVML_GPU_FABRIC_STATE_COMPLETED:
            return FAILED, DCGM_CODES.get(info.status, -8), NO_CODE, NO_CODE, mask, summary
        case pynvml.NVML_GPU_FABRIC_STATE_NOT_STARTED | pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS:
            return info.state, NO_CODE, NO_CODE, NO_CODE, mask, summary
        case _:  # a state that is newer than this code
            return NO_CODE, NO_CODE, NO_CODE, NO_CODE, mask, summary


def _info(handle: Any) -> Any:
    # The third version of the record has the summary. An older driver returns "version mismatch" for it, or does not
    # have the function; the first function, to be removed in CUDA 14.0, has no health at all.
    for record in (pynvml.c_nvmlGpuFabricInfo_v3_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()):
        try:
            pynvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(record))
        except pynvml.NVMLError as error:
            if error.value not in (VERSION_MISMATCH, FUNCTION_NOT_FOUND):
                raise
        else:
            return record
    oldest = pynvml.c_nvmlGpuFabricInfo_t()
    pynvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(oldest))
    return oldest
