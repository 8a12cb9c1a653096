"""Finds why a GPU pod is not running yet: one reason of a closed set for each pod. No I/O, no state.

The order is: what the kubelet says of a bound pod; gates and gangs; pods that are being removed for it; claims and
volumes that are missing; what keeps the pod off the nodes that have its GPUs; and what else the scheduler's message
names. What can never be met comes before what is short now.
"""

from exporter.cluster.kubernetes.converting.events import CLAIM_EVENTS, SANDBOX_EVENTS, VOLUME_EVENTS, events_about
from exporter.cluster.kubernetes.objects.records import Pod
from exporter.cluster.scheduling.reasons.cluster_state import ClusterState
from exporter.cluster.scheduling.reasons.message import Message, parse
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason
from exporter.cluster.scheduling.reasons.unschedulable import unschedulable
from exporter.cluster.scheduling.reasons.wordings import Cause
from exporter.gpu_names import GpuResources

_REPEATED_SECONDS = 600.0
"""How long an event of a kubelet counts: it tries again every two minutes, and repeats an event every five at least."""


def pending_reason(pod: Pod, cluster: ClusterState) -> PendingReason:
    """Return the current reason of a pod whose phase is Pending."""
    if pod.node:
        return _bound(pod, cluster)
    if pod.gated:
        return PendingReason.QUEUED if pod.plan.queued else PendingReason.GATED
    if (pod.namespace, pod.plan.group.name) in cluster.gangs:
        return PendingReason.GANG
    message = message_of(pod, cluster.gpus)
    if _preempting(pod, message, cluster):
        return PendingReason.PREEMPTING
    if pod.plan.claim_missing:
        return PendingReason.CLAIM
    if message is None:
        return _without_verdict(pod)
    return _after_verdict(pod, message, cluster)


def _after_verdict(pod: Pod, message: Message, cluster: ClusterState) -> PendingReason:
    assert pod.scheduled is not None
    if pod.scheduled.status != "False":
        return PendingReason.OTHER
    if pod.scheduled.reason == "SchedulerError":
        return _scheduler_error(pod.scheduled.message)
    return unschedulable(pod, message, cluster)


def message_of(pod: Pod, gpus: GpuResources) -> Message | None:
    """What the scheduler's message states; None while there is none, as when a removed gate still has its condition."""
    condition = pod.scheduled
    if condition is None or condition.reason == "SchedulingGated":
        return None
    return parse(condition.message, gpus)


def waits_for_gang(pod: Pod, gpus: GpuResources) -> bool:
    """Whether the pod waits for the other pods of its group: it is then the same for all of them."""
    message = message_of(pod, gpus)
    if message is None:
        return pod.plan.group.built_in and not pod.plan.nominated
    return Cause.GANG in message.causes


def _bound(pod: Pod, cluster: ClusterState) -> PendingReason:
    if pod.plan.not_started:
        return PendingReason.of(pod.plan.not_started)
    if cluster.node_names is not None and pod.node not in cluster.node_names:
        return PendingReason.NODE_UNAVAILABLE
    events = events_about(cluster.events, pod.namespace, pod.uid)
    found = {event.reason for event in events if cluster.now - event.at <= _REPEATED_SECONDS}
    if found & SANDBOX_EVENTS:
        return PendingReason.START_FAILED
    if found & VOLUME_EVENTS:
        return PendingReason.VOLUME
    return PendingReason.CLAIM if found & CLAIM_EVENTS else PendingReason.STARTING


def _preempting(pod: Pod, message: Message | None, cluster: ClusterState) -> bool:
    """Whether other pods are being removed for it. A node is also nominated for a pod that waits for its volume."""
    if message is None:
        return False
    if Cause.PREEMPTING in message.causes:
        return True
    if not pod.plan.nominated or pod.scheduled is None or pod.scheduled.reason != "Unschedulable":
        return False
    return pod.plan.nominated in cluster.leaving or not message.preemption_failed


def _without_verdict(pod: Pod) -> PendingReason:
    """The scheduler writes nothing while it waits for a volume or a claim on the node that it has chosen."""
    if pod.plan.nominated and pod.plan.has_volume_claims:
        return PendingReason.VOLUME
    return PendingReason.CLAIM if pod.plan.nominated and pod.claims else PendingReason.NOT_TRIED


def _scheduler_error(text: str) -> PendingReason:
    lowered = text.lower()
    if any(word in lowered for word in ("volume", "persistentvolumeclaim", "storageclass")):
        return PendingReason.VOLUME
    if any(word in lowered for word in ("claim", "dynamicresources", "allocate devices")):
        return PendingReason.CLAIM
    return PendingReason.SCHEDULER_ERROR
