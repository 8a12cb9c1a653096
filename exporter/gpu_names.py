"""Names of GPU resources and GPU models, the same for the node exporter and the cluster watcher."""

import re
from dataclasses import dataclass
from functools import lru_cache

GPU_DRIVER = "gpu.nvidia.com"
"""NVIDIA's DRA driver: devices that it offers are allocated through ResourceClaims."""
WHOLE_GPU = "nvidia.com/gpu"
"""The resource of NVIDIA's device plugin for whole GPUs, unless it was given another name."""
VOLCANO = "volcano.sh/vgpu-number"
"""The resource of Volcano's device plugin: shares of GPUs, which Volcano's scheduler chooses."""
OTHER_VENDORS = ("amd.com/", "gpu.intel.com/", "intel.com/")
"""What resources of AMD's and Intel's device plugins begin with."""
RESERVATION_NAMESPACES = ("kai-resource-reservation", "runai-reservation")
"""Where KAI (since 0.6) and Run:ai keep a pod for each GPU whose parts they give out: it occupies the GPU."""
MONITORING_NAMESPACES = ("gpu-operator", "gpugauge")
"""Where pods have GPUs through ResourceClaims for monitoring alone: the GPU Operator's, and our own."""
GPU_FRACTION = "gpu-fraction"
"""The resource of a pod that asks KAI or Run:ai for a part of a GPU, by annotations and not by a device resource."""
_GPU_RESOURCE = re.compile(
    r"nvidia\.com/(?:"
    r"(?i:gpus?)(?:\.shared|-[\w.-]+)?"  # NVIDIA's device plugin, a name that someone gave it, the usual misspelling
    r"|mig-.+|mig\d.*"
    r"|(?:AD|G[A-Z]|TU)\d{2,3}[A-Z]*_\w.*"  # a GPU passed through to a virtual machine: chip, then product
    r"|(?:GRID|NVIDIA)_\w.*"  # a virtual GPU of NVIDIA's vGPU software
    r")|volcano\.sh/vgpu-number",
    re.ASCII,
)
_MIG_RESOURCE = re.compile(r"nvidia\.com/mig-(\d+g)\.")
_GPU_CLASS = re.compile(r"(?:^|[^a-z0-9])(?:v?gpu|mig|nvidia)(?:$|[^a-z])", re.ASCII)
_SHARES = {
    "nvidia.com/gpumem": WHOLE_GPU,
    "nvidia.com/gpumem-percentage": WHOLE_GPU,
    "nvidia.com/gpucores": WHOLE_GPU,
    "volcano.sh/vgpu-memory": VOLCANO,
    "volcano.sh/vgpu-cores": VOLCANO,
}
_NOT_IN_LABEL_NAME = re.compile(r"[^a-zA-Z0-9]")
_BLANKS = re.compile(r"\s+")
# GPU feature discovery appends the MIG profile under the `single` strategy (`INVALID` when profiles are mixed), then
# `-SHARED` when the GPU is time-sliced or shared through MPS.
_MODEL_SUFFIX = re.compile(r"(?:-MIG-(?:INVALID|\d+[cg]\..+?))?(?:-SHARED)?$", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResourcePatterns:
    """Resource names that the operator configures: `name in patterns`. In each, `*` stands for any text."""

    patterns: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return _matching(self.patterns).fullmatch(name) is not None


@lru_cache(maxsize=64)
def _matching(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all of the patterns; it matches nothing where there are none."""
    alternatives = [".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns]
    return re.compile("|".join(alternatives) or "(?!)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class GpuResources:
    """Which resource names mean GPUs: the usual device plugins', and those that the operator configures.

    `name in resources` is true for `nvidia.com/gpu`, `nvidia.com/gpu.shared`, every MIG profile, passthrough and
    virtual GPUs, and for names that are meant to be one of these (`nvidia.com/gpus`, `nvidia.com/gpu-h100`).
    """

    further: ResourcePatterns = ResourcePatterns()

    def __contains__(self, name: str) -> bool:
        return _GPU_RESOURCE.fullmatch(name) is not None or name in self.further


def gpu_resources(further: tuple[str, ...] = ()) -> GpuResources:
    """Add the patterns of `--nvidia-resource-names`: `amd.com/*` means every name of that vendor, `*` nothing."""
    return GpuResources(ResourcePatterns(tuple(pattern for pattern in further if pattern.strip("*"))))


def mig_slices(name: str) -> str:
    """The size of the MIG devices of a resource, without their memory: `2g` of `nvidia.com/mig-2g.20gb`, else empty."""
    match = _MIG_RESOURCE.match(name)
    return match[1] if match else ""


def share_of(name: str) -> str | None:
    """Return the device resource of which a resource is a share (HAMi, Volcano), None for any other resource.

    `nvidia.com/gpumem` is the memory of an `nvidia.com/gpu`: it is no device, but who asks for it gets one.
    """
    return _SHARES.get(name)


def is_gpu_class(name: str) -> bool:
    """Whether the name of a DeviceClass speaks of GPUs (`gpu.nvidia.com`, `mig.nvidia.com`, `team-gpu`)."""
    return "/" not in name and _GPU_CLASS.search(name) is not None


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
