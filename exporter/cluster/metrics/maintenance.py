"""Metrics of nodes under maintenance, by which alerts leave out what is expected there."""

from collections.abc import Iterator, Mapping

from exporter.cluster.kubernetes.nodes.node_description import MIG_STATE, REPARTITIONING
from exporter.cluster.kubernetes.objects.overrides import in_maintenance
from exporter.cluster.kubernetes.objects.records import Node
from exporter.cluster.view import ClusterView
from exporter.metric import Family, Kind, metric
from exporter.reason import Reason

MAINTENANCE = metric(
    "gpugauge_node_maintenance",
    Kind.GAUGE,
    "Nodes that are cordoned, upgraded, repartitioned, in planned maintenance or about to be removed.",
    "node",
    "reason",
)
METRICS = (MAINTENANCE,)

UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"
"""A label that the GPU Operator writes. A failed upgrade is not maintenance: it needs an operator."""
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
REMOVAL_TAINTS = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"})


class MaintenanceReason(Reason):
    """Why a node is under maintenance: label `reason` of `gpugauge_node_maintenance`."""

    CORDON = ("cordon", "The node is cordoned.", "None if planned; uncordon it with kubectl uncordon.")
    DRIVER_UPGRADE = (
        "driver_upgrade",
        "The GPU Operator is upgrading the driver of the node.",
        "None; look at the label nvidia.com/gpu-driver-upgrade-state if it takes long.",
    )
    MIG_RECONFIG = (
        "mig_reconfig",
        "The MIG manager is changing the MIG layout of the node.",
        "None; look at the label nvidia.com/mig.config.state if it takes long.",
    )
    PLANNED = (
        "planned",
        "The annotation gpugauge.io/maintenance of the node announces it.",
        "None; take the annotation away when the work is done.",
    )
    SCALE_DOWN = ("scale_down", "An autoscaler is about to remove the node.", "None.")


def maintenance_families(view: ClusterView) -> list[Family]:
    """The families; none while the nodes are not known."""
    if view.nodes is None:
        return []
    found = [(node.name, reason) for node in view.gpu_nodes() for reason in reasons(node, view.now)]
    return [Family(MAINTENANCE, [MAINTENANCE.sample(1, node=n, reason=reason) for n, reason in found])]


def reasons(node: Node, now: float) -> Iterator[MaintenanceReason]:
    """Every reason that applies at `now`, in seconds since the epoch."""
    labels: Mapping[str, str] = dict(zip(node.labels[::2], node.labels[1::2], strict=True))
    if node.cordoned:
        yield MaintenanceReason.CORDON
    if labels.get(UPGRADE_STATE) in UPGRADING:
        yield MaintenanceReason.DRIVER_UPGRADE
    if labels.get(MIG_STATE) in REPARTITIONING:
        yield MaintenanceReason.MIG_RECONFIG
    if node.maintenance and in_maintenance(node.maintenance, now):
        yield MaintenanceReason.PLANNED
    if any(key in REMOVAL_TAINTS for key, _, _ in node.taints):
        yield MaintenanceReason.SCALE_DOWN
