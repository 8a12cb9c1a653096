"""Describes a node's GPUs from its labels: those of GPU feature discovery and those that name a node pool."""

from collections.abc import Mapping
from sys import intern

from exporter.cluster.kubernetes.records import NodeDescription
from exporter.gpu_names import canonical_model

_SHARING = {"none": "exclusive", "time-slicing": "time-slicing", "mps": "mps"}
_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
"""Labels by which the usual providers and autoscalers name a group of nodes."""

NodeLabels = Mapping[str, str | None]


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
