"""Describes a node's GPUs from its labels: those of GPU feature discovery and those that name a node pool."""

from collections.abc import Mapping
from sys import intern

from exporter.cluster.kubernetes.objects.records import NodeDescription
from exporter.gpu_names import canonical_model

_SHARING = {"none": "exclusive", "time-slicing": "time-slicing", "mps": "mps"}
_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
"""Labels by which the usual providers and autoscalers name a group of nodes."""

MIG_STATE = "nvidia.com/mig.config.state"
"""A label that the MIG manager writes."""
MIG_CONFIG = "nvidia.com/mig.config"
"""A label that names the MIG layout that a node is to have."""
REPARTITIONING = frozenset({"pending", "rebooting"})
"""States in which the MIG manager changes the layout."""
_GPU_LABELS = (
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.present",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-count",
    "kubernetes.azure.com/accelerator",
)
"""Labels of nodes with GPUs: GPU feature discovery's and those of providers, which are there before it runs."""
MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
"""Labels whose value names the GPU model."""
_NO_GPUS = frozenset({"", "false", "0"})

NodeLabels = Mapping[str, str | None]


def labeled_devices(labels: NodeLabels) -> int | None:
    """Return how many devices the node should offer: its GPUs times their replicas; None without such labels."""
    gpus = _number(labels.get("nvidia.com/gpu.count") or labels.get("karpenter.k8s.aws/instance-gpu-count"))
    return None if gpus is None else gpus * max(1, _number(labels.get("nvidia.com/gpu.replicas")) or 1)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def labeled_with_gpus(labels: NodeLabels) -> bool:
    """Whether the node's labels state that it has GPUs."""
    return any((labels.get(key) or "") not in _NO_GPUS for key in _GPU_LABELS)


def describe(labels: NodeLabels) -> NodeDescription:
    """Describe the node's GPUs. `sharing` is `unknown` without a label.

    Its values are those of `gpugauge_allocation_info`, and `mps`, which no node exporter exposes.
    """
    return NodeDescription(
        model=intern(model(labels)),
        gpu_count=intern(labels.get("nvidia.com/gpu.count") or ""),
        sharing=_SHARING.get(labels.get("nvidia.com/gpu.sharing-strategy") or "", "unknown"),
        mig_strategy=intern(labels.get("nvidia.com/mig.strategy") or ""),
        pool=intern(next((found for key in _POOLS if (found := labels.get(key))), "")),
    )


def model(labels: NodeLabels) -> str:
    """Return the GPU model, spelled as the node exporter does; empty where GPU feature discovery has set no label."""
    return canonical_model(labels.get("nvidia.com/gpu.product") or "")
