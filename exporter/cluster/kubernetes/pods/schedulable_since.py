"""Finds the time since which a pod could be scheduled, as far as this watcher can find it out. No I/O, no state.

A pod could be scheduled since its creation, or since its last scheduling gate was removed. When this watcher first
sees a pod after that removal, the time of the removal is unknown and the creation may lie hours before it; such a pod
counts from the moment when it is first seen. Three traces show that a pod was gated: Kueue's labels and annotations; a
PodScheduled condition without a transition time, which older API servers write on a gated pod and the scheduler keeps
as long as the status stays False; and, since 1.36 writes the time of creation there, that time together with a
`generation` above 1, which counts the changes of the spec (1.34) that a removed gate is one of.
"""

import msgspec

from exporter.api_objects.wire import ObjectMeta
from exporter.cluster.kubernetes.objects.records import Pod, PodScheduledCondition

_KUEUE_LABELS = ("kueue.x-k8s.io/managed", "kueue.x-k8s.io/podset", "kueue.x-k8s.io/pod-group-name")
_KUEUE_ANNOTATIONS = ("kueue.x-k8s.io/workload",)


def once_gated(meta: ObjectMeta, created: float, scheduled: PodScheduledCondition | None) -> bool:
    """Whether a pod without scheduling gates, created at this time, shows traces of an earlier one."""
    labels, annotations = meta.labels or {}, meta.annotations or {}
    if any(key in labels for key in _KUEUE_LABELS) or any(key in annotations for key in _KUEUE_ANNOTATIONS):
        return True
    if scheduled is None or scheduled.status != "False":
        return False
    return scheduled.since is None or (scheduled.since == created and (meta.generation or 1) > 1)


def with_since(pod: Pod, before: Pod | None, now: float) -> Pod:
    """Return the pod with `schedulable_since` set.

    `before` is the record stored under the same name, possibly of another pod. `now` is in seconds since the epoch.
    """
    return msgspec.structs.replace(pod, schedulable_since=_since(pod, before, now))


def _since(pod: Pod, before: Pod | None, now: float) -> float | None:
    if pod.gated:
        return None
    if before is not None and before.uid == pod.uid:
        return now if before.schedulable_since is None else before.schedulable_since
    return now if pod.once_gated else pod.created
