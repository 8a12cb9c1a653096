"""Reads whether the vGPU of a virtual machine has a license, as DCGM's field 526 of a GPU (4.6.0, source)."""

from typing import Any

import pynvml

from exporter.node.nvml.native.values import NONE_32, RawValue


def vgpu_license(handle: Any) -> tuple[RawValue]:
    """Return 1 with a license and 0 without; 0 also on a GPU that needs none, because it is no vGPU.

    A blank where the driver lists licensed features, but not that of vGPUs.
    """
    found = pynvml.nvmlDeviceGetGridLicensableFeatures_v4(handle)
    if not found.isGridLicenseSupported:
        return (0,)
    features = found.gridLicensableFeatures[: found.licensableFeaturesCount]
    states = (each.featureState for each in features if each.featureCode == pynvml.NVML_GRID_LICENSE_FEATURE_CODE_VGPU)
    return (next((int(state > 0) for state in states), NONE_32),)
