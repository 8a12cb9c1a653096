"""Reads from a failed pod how it ended. No I/O, no state."""

from collections.abc import Mapping

from exporter.cluster.kubernetes.objects import wire
from exporter.cluster.kubernetes.pods.pod_state import rejected
from exporter.reason import Reason


class PodFailureReason(Reason):
    """How a GPU pod ended that ran and failed: label `reason` of `gpugauge_gpu_pod_failures_total`."""

    ERROR = (
        "error",
        "A container ended with an error.",
        "Read its log with kubectl logs.",
    )
    OOM = (
        "oom",
        "A container used more memory of the node than its limit, and the kernel ended it.",
        "Raise the memory limit, or let the program load less at once. It is not the memory of the GPU.",
    )
    EVICTED = (
        "evicted",
        "The pod was evicted: by its kubelet, which ran short of memory or disk, by a drain, or because of a taint.",
        "Read the message of the pod's status; for a shortage look at what else runs on the node.",
    )
    PREEMPTED = (
        "preempted",
        "The pod had to give way to one of a higher priority.",
        "None if intended; else give it a higher priority class.",
    )
    NODE_LOST = (
        "node_lost",
        "The node was shut down or is gone.",
        "Look at the node; repeated on one node, take it out of service.",
    )


_ENDED: Mapping[str, PodFailureReason] = {
    "PreemptionByScheduler": PodFailureReason.PREEMPTED,
    "Preempting": PodFailureReason.PREEMPTED,
    "DeletionByTaintManager": PodFailureReason.EVICTED,
    "EvictionByEvictionAPI": PodFailureReason.EVICTED,
    "TerminationByKubelet": PodFailureReason.EVICTED,
    "Evicted": PodFailureReason.EVICTED,
    "DeletionByPodGC": PodFailureReason.NODE_LOST,
    "NodeLost": PodFailureReason.NODE_LOST,
    "Terminated": PodFailureReason.NODE_LOST,
    "NodeShutdown": PodFailureReason.NODE_LOST,
    "Shutdown": PodFailureReason.NODE_LOST,
}
"""Reasons of the condition DisruptionTarget and of a pod's status with which others end it.

`Terminated` and `NodeShutdown` are written when a node is shut down, `DeletionByPodGC` when the node is gone.
"""


def failure(status: wire.PodStatus) -> PodFailureReason | None:
    """How a pod ended that ran and failed; None for one that is not finished or that its kubelet did not admit.

    The condition DisruptionTarget (Kubernetes 1.26) says who ended the pod; the status's reason did so before.
    """
    if status.phase != "Failed" or rejected(status):
        return None
    found = _ENDED.get(_disruption(status)) or _ENDED.get(status.reason or "")
    if found is not None:
        return found
    ended = (each.state.terminated for each in status.container_statuses or () if each.state is not None)
    killed = any(each is not None and each.reason == "OOMKilled" for each in ended)
    return PodFailureReason.OOM if killed else PodFailureReason.ERROR


def _disruption(status: wire.PodStatus) -> str:
    targets = (each for each in status.conditions or () if each.type == "DisruptionTarget" and each.status == "True")
    return next((each.reason or "" for each in targets), "")
