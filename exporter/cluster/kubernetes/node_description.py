"""What a node's labels say of its GPUs: those of GPU feature discovery and those that name a pool."""

import re
from collections.abc import Mapping
from sys import intern

from exporter.cluster.kubernetes.records import Description

_SUFFIX = re.compile(r"(?:-MIG-(?:INVALID|\d+[cg]\..+?))?(?:-SHARED)?$", re.ASCII)
_SHARING = {"none": "exclusive", "time-slicing": "time-slicing", "mps": "mps"}
_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
"""Labels by which the usual providers and autoscalers name a group of nodes."""

Texts = Mapping[str, str | None]


def described(labels: Texts) -> Description:
    """In the words of the page: sharing as `gpugauge_allocation_info` spells it, unknown where nothing says so."""
    return Description(
        model=intern(model(labels)),
        gpu_count=intern(labels.get("nvidia.com/gpu.count") or ""),
        sharing=_SHARING.get(labels.get("nvidia.com/gpu.sharing-strategy") or "", "unknown"),
        mig_strategy=intern(labels.get("nvidia.com/mig.strategy") or ""),
        pool=intern(next((found for key in _POOLS if (found := labels.get(key))), "")),
    )


def model(labels: Texts) -> str:
    """The board's name as the node exporter writes it; empty where GPU feature discovery has not labelled the node.

    `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED` is `NVIDIA-A100-SXM4-40GB`.
    """
    return _SUFFIX.sub("", (labels.get("nvidia.com/gpu.product") or "").replace(" ", "-"), count=1)
