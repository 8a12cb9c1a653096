"""The wordings of schedulers: which cause each text in a PodScheduled condition names.

Rows come from the schedulers' sources: kube-scheduler 1.20 to 1.37 with its plugins, scheduler-plugins, Volcano, KAI,
and HAMi, an extender of kube-scheduler. `tests/exporter/cluster/scheduling/test_message.py` has a message for each.
"""

from enum import StrEnum
from typing import NamedTuple


class Cause(StrEnum):
    """Why one node, or the cluster as a whole, cannot run the pod."""

    GPU = "gpu"
    """Too few free GPUs."""
    SOME_RESOURCE = "some_resource"
    """Too little of a resource that the text does not name."""
    DEVICE_CLAIM = "device_claim"
    """Too few free devices for a claim, or for a resource that is served by DRA."""
    CPU_OR_MEMORY = "cpu_or_memory"
    """Too little free CPU, memory or huge pages."""
    OTHER_RESOURCE = "other_resource"
    """Too many pods, too little local storage, or too few of another extended resource."""
    SELECTOR = "selector"
    """Node selector, node affinity or node name."""
    POD_AFFINITY = "pod_affinity"
    """Affinity or anti-affinity between pods."""
    TOPOLOGY = "topology"
    """Topology spread constraints, or no place within the topology that the workload asks for."""
    TAINT = "taint"
    """A taint that the pod does not tolerate, be it somebody's or the node's own state."""
    NODE_UNAVAILABLE = "node_unavailable"
    """The node is cordoned or in a condition that the scheduler avoids, or there is no node."""
    GPU_UNAVAILABLE = "gpu_unavailable"
    """The node's GPUs are unhealthy or not registered."""
    VOLUME = "volume"
    CLAIM = "claim"
    """A ResourceClaim that is missing or cannot be had."""
    GANG = "gang"
    """The pod must start together with others."""
    QUOTA = "quota"
    """A quota of a queue or a namespace is used up."""
    PREEMPTING = "preempting"
    """Other pods are being removed for this one."""
    NO_WORD = "no_word"
    """A cause that is understood, such as a host port, and has no reason of its own."""
    UNKNOWN = "unknown"
    """A text that is in no table."""


class Wording(NamedTuple):
    """A text that names a cause."""

    text: str
    cause: Cause


STARTS = (
    # kube-scheduler: resources
    Wording("Too many pods", Cause.OTHER_RESOURCE),
    Wording("cannot fit resource", Cause.DEVICE_CLAIM),
    # kube-scheduler: nodes
    Wording("node(s) had taint", Cause.TAINT),
    Wording("node(s) had untolerated taint", Cause.TAINT),
    Wording("node(s) were unschedulable", Cause.NODE_UNAVAILABLE),
    Wording("node(s) had unknown conditions", Cause.NODE_UNAVAILABLE),
    Wording("node(s) were not ready", Cause.NODE_UNAVAILABLE),
    Wording("node(s) didn't match Pod's node affinity", Cause.SELECTOR),
    Wording("node(s) didn't match scheduler-enforced node affinity", Cause.SELECTOR),
    Wording("node(s) didn't match node selector", Cause.SELECTOR),
    Wording("node(s) didn't match the requested node name", Cause.SELECTOR),
    Wording("pod affinity terms conflict", Cause.SELECTOR),
    Wording("node(s) didn't match pod affinity", Cause.POD_AFFINITY),
    Wording("node(s) didn't match pod anti-affinity", Cause.POD_AFFINITY),
    Wording("node(s) didn't satisfy existing pods", Cause.POD_AFFINITY),
    Wording("node(s) didn't match pod topology spread constraints", Cause.TOPOLOGY),
    Wording("node(s) didn't have free ports", Cause.NO_WORD),
    Wording("node(s) didn't match Pod's required features", Cause.NO_WORD),
    Wording("Pod has a restartable init container", Cause.NO_WORD),
    Wording("All PostFilter plugins are skipped", Cause.NO_WORD),
    # kube-scheduler: volumes
    Wording("pod has unbound immediate PersistentVolumeClaims", Cause.VOLUME),
    Wording("persistentvolumeclaim", Cause.VOLUME),
    Wording("persistentvolume ", Cause.VOLUME),
    Wording("PersistentVolume", Cause.VOLUME),
    Wording("storageclass", Cause.VOLUME),
    Wording("VolumeBindingMode not set for StorageClass", Cause.VOLUME),
    Wording("waiting for ephemeral volume controller", Cause.VOLUME),
    Wording("node(s) didn't find available persistent volumes", Cause.VOLUME),
    Wording("node(s) did not have enough free storage", Cause.VOLUME),
    Wording("node(s) unavailable due to one or more pvc(s)", Cause.VOLUME),
    Wording("node(s) unavailable due to PersistentVolumeClaim", Cause.VOLUME),
    Wording("node has pod using PersistentVolumeClaim", Cause.VOLUME),
    Wording("node(s) had volume node affinity conflict", Cause.VOLUME),
    Wording("node(s) didn't match PersistentVolume's node affinity", Cause.VOLUME),
    Wording("node(s) had no available volume zone", Cause.VOLUME),
    Wording("node(s) had no available disk", Cause.VOLUME),
    Wording("node(s) exceed max volume count", Cause.VOLUME),
    # kube-scheduler: claims
    Wording("cannot allocate all claims", Cause.DEVICE_CLAIM),
    Wording("cannot schedule extended resource claim", Cause.DEVICE_CLAIM),
    Wording("asked by caller to stop allocating devices", Cause.DEVICE_CLAIM),
    Wording("invalid resource pools were encountered", Cause.DEVICE_CLAIM),
    Wording("resourceclaim", Cause.CLAIM),
    Wording("resource claim", Cause.CLAIM),
    Wording("node allocatable resource claim", Cause.CLAIM),
    Wording("pod level request for", Cause.CLAIM),
    Wording("pod level limit for", Cause.CLAIM),
    # kube-scheduler: the whole pod
    Wording("no nodes available to schedule pods", Cause.NODE_UNAVAILABLE),
    Wording("waiting for minCount pods from a gang", Cause.GANG),
    Wording("waiting for pods's pod group", Cause.GANG),
    Wording("waiting for composite pod group", Cause.GANG),
    Wording("failed to build hierarchy snapshot", Cause.GANG),
    Wording("pod group is waiting for preemption", Cause.PREEMPTING),
    Wording("waiting for the preemption for this pod", Cause.PREEMPTING),
    Wording("no feasible placements found", Cause.GANG),
    # scheduler-plugins
    Wording("PodGroup ", Cause.GANG),
    Wording("podGroup ", Cause.GANG),
    Wording("resource gap:", Cause.GANG),
    Wording("rejected due to timeout after waiting", Cause.GANG),
    # Volcano
    Wording("node(s) pod number exceeded", Cause.OTHER_RESOURCE),
    Wording("node(s) resource fit failed", Cause.SOME_RESOURCE),
    Wording("pod group is not ready", Cause.GANG),
    # KAI
    Wording("node-group(s) didn't have enough resources", Cause.GANG),
    Wording("node is not a gpu node", Cause.GPU_UNAVAILABLE),
    Wording("Non-preemptible workload is over quota", Cause.QUOTA),
    # HAMi
    Wording("node unregistered", Cause.GPU_UNAVAILABLE),
    Wording("NodeInsufficientDevice", Cause.GPU),
    Wording("NodeUnfitPod", Cause.GPU),
    Wording("AllocatedCardsInsufficientRequest", Cause.GPU),
    Wording("CardTimeSlicingExhausted", Cause.GPU),
    Wording("CardComputeUnitsExhausted", Cause.GPU),
    Wording("CardInsufficientMemory", Cause.GPU),
    Wording("CardInsufficientCore", Cause.GPU),
    Wording("ExclusiveDeviceAllocateConflict", Cause.GPU),
    Wording("CardMigTopologyInfeasible", Cause.GPU),
    Wording("CardTypeMismatch", Cause.SELECTOR),
    Wording("CardUuidMismatch", Cause.SELECTOR),
    Wording("CardNotFoundCustomFilterRule", Cause.SELECTOR),
    Wording("ModeNotFit", Cause.SELECTOR),
    Wording("NumaNotFit", Cause.TOPOLOGY),
    Wording("CardNotHealth", Cause.GPU_UNAVAILABLE),
    Wording("CardCordoned", Cause.GPU_UNAVAILABLE),
    Wording("ResourceQuotaNotFit", Cause.QUOTA),
)
"""Texts about a node or a pod, by their beginnings. The longest one that fits counts."""

ANYWHERE = (
    Wording("tasks in gang unschedulable", Cause.GANG),  # Volcano
    Wording("can possibly be assigned to", Cause.GANG),  # Volcano: only the other pods are missing
    Wording("cannot find enough sibling pods", Cause.GANG),  # scheduler-plugins
    Wording("gated pods in the same PodGroup", Cause.GANG),  # scheduler-plugins
    Wording("rejected while waiting on permit", Cause.GANG),  # scheduler-plugins
    Wording("pod group is unschedulable", Cause.GANG),  # kube-scheduler 1.36
    Wording("minCount", Cause.GANG),  # kube-scheduler 1.35
    Wording("placements are available, first placement status", Cause.GANG),  # kube-scheduler 1.36
    Wording("is rejected in PreFilter because ElasticQuota", Cause.QUOTA),  # scheduler-plugins
    Wording("is rejected in PreFilter because total ElasticQuota", Cause.QUOTA),  # scheduler-plugins
    Wording("queue resource quota insufficient", Cause.QUOTA),  # Volcano
    Wording("quota has reached the allowable limit", Cause.QUOTA),  # KAI
    Wording("over quota", Cause.QUOTA),  # KAI
    Wording("didn't have enough resources within the topology", Cause.TOPOLOGY),  # KAI
    Wording("CSI driver is not installed on the node", Cause.VOLUME),
    Wording("ResourceClaim not created yet", Cause.CLAIM),
    Wording("was not created for Pod", Cause.CLAIM),
    Wording("device class", Cause.CLAIM),
    Wording("unknown request type", Cause.CLAIM),
)
"""Texts that names of objects come before, by any part of them."""

KAI_RESOURCES = {
    "GPUs": Cause.GPU,
    "GPU": Cause.GPU,
    "GPU memory": Cause.GPU,
    "CPU cores": Cause.CPU_OR_MEMORY,
    "CPU": Cause.CPU_OR_MEMORY,
    "memory": Cause.CPU_OR_MEMORY,
    "MIG": Cause.GPU,
}
"""What KAI names after `didn't have enough resources: `; anything else is the name of a resource."""

PLUGINS = {
    "NodeAffinity": Cause.SELECTOR,
    "NodeName": Cause.SELECTOR,
    "NodeUnschedulable": Cause.NODE_UNAVAILABLE,
    "TaintToleration": Cause.TAINT,
    "InterPodAffinity": Cause.POD_AFFINITY,
    "PodTopologySpread": Cause.TOPOLOGY,
    "VolumeBinding": Cause.VOLUME,
    "VolumeZone": Cause.VOLUME,
    "VolumeRestrictions": Cause.VOLUME,
    "NodeVolumeLimits": Cause.VOLUME,
    "DynamicResources": Cause.CLAIM,
    "NodeResourcesFit": Cause.SOME_RESOURCE,
    "NodePorts": Cause.NO_WORD,
    "GangScheduling": Cause.GANG,
    "Coscheduling": Cause.GANG,
}
"""Plugins of kube-scheduler, named where they rule out nodes before these are looked at one by one (1.33)."""
