"""Names of GPU resources and GPU models, the same for the node exporter and the cluster watcher."""

import re
from dataclasses import dataclass
from functools import lru_cache

_WHOLE_GPU_RESOURCES = frozenset({"nvidia.com/gpu", "nvidia.com/gpu.shared"})
_MIG_RESOURCE_PREFIX = "nvidia.com/mig-"
_NOT_IN_LABEL_NAME = re.compile(r"[^a-zA-Z0-9]")
_BLANKS = re.compile(r"\s+")
# GPU feature discovery appends the MIG profile under the `single` strategy (`INVALID` when profiles are mixed), then
# `-SHARED` when the GPU is time-sliced or shared through MPS.
_MODEL_SUFFIX = re.compile(r"(?:-MIG-(?:INVALID|\d+[cg]\..+?))?(?:-SHARED)?$", re.ASCII)


@dataclass(frozen=True, slots=True)
class GpuResources:
    """Which resource names mean GPUs: NVIDIA's device plugin's, and those that the operator configures.

    `name in resources` is true for `nvidia.com/gpu`, `nvidia.com/gpu.shared` and every MIG profile.
    """

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return (
            name in _WHOLE_GPU_RESOURCES
            or (name.startswith(_MIG_RESOURCE_PREFIX) and name != _MIG_RESOURCE_PREFIX)
            or name.startswith(self.prefixes)
            or name in self.names
        )


def gpu_resources(extra: tuple[str, ...] = ()) -> GpuResources:
    """Add the names of `--nvidia-resource-names`; `amd.com/*` means every name with that prefix."""
    prefixes = tuple(name[:-1] for name in extra if name.endswith("*") and len(name) > 1)
    return GpuResources(frozenset(name for name in extra if not name.endswith("*")), prefixes)


@lru_cache(maxsize=1024)
def resource_label(name: str) -> str:
    """Spell a resource name as kube-state-metrics does in label values: `nvidia.com/gpu` is `nvidia_com_gpu`."""
    return _NOT_IN_LABEL_NAME.sub("_", name)


@lru_cache(maxsize=1024)
def canonical_model(product: str) -> str:
    """Spell a GPU's product name as the label `model` does: `-` for blanks, without a MIG or sharing suffix.

    `NVIDIA A100-SXM4-40GB` (NVML) and `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED` (GPU feature discovery's node label)
    are both `NVIDIA-A100-SXM4-40GB`.
    """
    return _MODEL_SUFFIX.sub("", _BLANKS.sub("-", product.strip()), count=1)
