"""Nodes that somebody or something is working on: what is expected there is no alarm."""

from collections.abc import Iterator, Mapping

from exporter.cluster.kubernetes.records import Node
from exporter.cluster.view import View
from exporter.metric import Family, Kind, Metric

MAINTENANCE = Metric(
    "gpugauge_node_maintenance",
    Kind.GAUGE,
    "Nodes that are cordoned, upgraded, repartitioned or about to be removed.",
    ("node", "reason"),
)
METRICS = (MAINTENANCE,)

UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"
"""Written by the GPU Operator. A failed upgrade is no maintenance: somebody must look."""
UPGRADING = frozenset(
    {
        "cordon-required",
        "wait-for-jobs-required",
        "pod-deletion-required",
        "drain-required",
        "node-maintenance-required",
        "post-maintenance-required",
        "pod-restart-required",
        "validation-required",
        "uncordon-required",
    }
)
MIG_STATE = "nvidia.com/mig.config.state"
"""Written by the MIG manager."""
REPARTITIONING = frozenset({"pending", "rebooting"})
REMOVAL_TAINTS = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"})


def maintenance_families(view: View) -> list[Family]:
    """Nothing while the nodes are not known."""
    if view.nodes is None:
        return []
    nodes = sorted(view.nodes, key=lambda node: node.name)
    pairs = ((("node", node.name), ("reason", reason)) for node in nodes for reason in reasons(node))
    return [Family(MAINTENANCE, [(view.label(pair), 1) for pair in pairs])]


def reasons(node: Node) -> Iterator[str]:
    """Every reason that holds now: `cordon`, `driver_upgrade`, `mig_reconfig`, `scale_down`."""
    labels: Mapping[str, str] = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    if node.cordoned:
        yield "cordon"
    if labels.get(UPGRADE_STATE) in UPGRADING:
        yield "driver_upgrade"
    if labels.get(MIG_STATE) in REPARTITIONING:
        yield "mig_reconfig"
    if any(key in REMOVAL_TAINTS for key, _, _ in node.taints):
        yield "scale_down"
