"""The reasons why a GPU pod, or work that has no pods yet, is pending: a closed set, all of it used by code."""

from exporter.reason import Reason


class PendingReason(Reason):
    """Why a GPU pod is not running yet: label `reason` of the pending series; see `docs/runbook.md`."""

    GATED = (
        "gated",
        "The pod has scheduling gates, of which one at least is not a queue's.",
        "Ask whoever set the scheduling gates.",
    )
    QUEUED = (
        "queued",
        "A queue such as Kueue holds the pod, or the work that has no pods yet.",
        "Wait, or look at the quota of the queue and at what is admitted before it.",
    )
    GANG = (
        "gang",
        "The pod must start together with others, which are missing or do not all fit.",
        "Check that all pods of the gang exist, then free enough GPUs for all of them at once.",
    )
    NOT_TRIED = (
        "not_tried",
        "The scheduler has not tried the pod yet.",
        "None for some seconds; then check that the pod's schedulerName names a scheduler that runs.",
    )
    INSUFFICIENT_GPU = (
        "insufficient_gpu",
        "The nodes that the pod could use have too few free GPUs.",
        "Wait, free GPUs (see the low utilization alerts), or add nodes.",
    )
    INSUFFICIENT_CPU_OR_MEMORY = (
        "insufficient_cpu_or_memory",
        "GPUs are free, but CPU, memory or huge pages on these nodes are not.",
        "Request less of them, or move other pods away from the GPU nodes.",
    )
    INSUFFICIENT_OTHER = (
        "insufficient_other",
        "GPUs are free, but pod places, local storage or other devices on these nodes are not.",
        "Request less of them, or move other pods away from the GPU nodes.",
    )
    NODE_SELECTOR_OR_AFFINITY = (
        "node_selector_or_affinity",
        "Node selector, node affinity or affinity between pods allow no node that has the GPUs.",
        "Correct them, or label the nodes.",
    )
    TAINT = (
        "taint",
        "The nodes with the GPUs have somebody's taint that the pod does not tolerate.",
        "Add the toleration, or remove the taint.",
    )
    TOPOLOGY = (
        "topology",
        "GPUs are free where the pod's topology spread or topology constraints do not allow it.",
        "Relax the constraints, or free GPUs where they allow the pod.",
    )
    VOLUME = (
        "volume",
        "A volume of the pod is missing, not bound, in use, cannot be mounted or can only be used on other nodes.",
        "Look at the PersistentVolumeClaims and at the pod's events.",
    )
    NODE_UNAVAILABLE = (
        "node_unavailable",
        "The nodes with the GPUs are cordoned, not ready, tainted for their own state or gone.",
        "Look at the conditions and taints of these nodes; uncordon or repair them.",
    )
    GPU_UNAVAILABLE = (
        "gpu_unavailable",
        "Nodes should offer the GPUs and do not: device plugin, unhealthy GPUs, or MIG being changed.",
        "Look at the device plugin's pod on these nodes, at their GPUs, and at nvidia.com/mig.config.state.",
    )
    FRAGMENTATION = (
        "fragmentation",
        "Enough GPUs are free in all, but not on one node.",
        "Request fewer per pod, or move pods together so that a node becomes free.",
    )
    UNSATISFIABLE_SIZE = (
        "unsatisfiable_size",
        "The pod requests more GPUs than any node that it could use has.",
        "Request fewer per pod, or add larger nodes.",
    )
    UNKNOWN_RESOURCE = (
        "unknown_resource",
        "No node offers the requested resource, and none should.",
        "Check the spelling of the resource; add nodes that offer it.",
    )
    CLAIM = (
        "claim",
        "A ResourceClaim of the pod is missing, or its devices cannot be had.",
        "Look at the pod's ResourceClaims, their DeviceClass and the ResourceSlices.",
    )
    QUOTA = (
        "quota",
        "A quota is used up, so that the pods are not made or not scheduled.",
        "Free GPUs of the same quota, or raise it.",
    )
    PREEMPTING = (
        "preempting",
        "Pods of lower priority are being removed for this pod.",
        "None for some minutes; then look at the pods that do not end.",
    )
    SCALING_UP = (
        "scaling_up",
        "An autoscaler is making a node for the pod.",
        "None for some minutes; then look at the autoscaler's log.",
    )
    IMAGE_PULL = (
        "image_pull",
        "The pod is bound to a node, and an image cannot be pulled.",
        "Check the image's name, the registry and the pull secret.",
    )
    START_FAILED = (
        "start_failed",
        "The pod is bound to a node, and a container or its sandbox cannot be started.",
        "Look at the pod's events: configuration, runtime class, GPU runtime, init containers.",
    )
    STARTING = (
        "starting",
        "The pod is bound to a node and its containers do not run yet.",
        "None for some minutes; then look at the pod's events.",
    )
    ADMISSION_FAILED = (
        "admission_failed",
        "The API server rejects the pods that a controller makes, or a kubelet rejected the pod.",
        "Look at the events: LimitRange, Pod Security, a webhook, a missing RuntimeClass, devices of the node.",
    )
    SCHEDULER_ERROR = (
        "scheduler_error",
        "The scheduler failed on the pod; it reached no verdict.",
        "Read the pod's PodScheduled condition and the scheduler's log.",
    )
    OTHER = ("other", "The scheduler names another cause.", "Read the pod's PodScheduled condition.")
