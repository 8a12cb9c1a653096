"""Finds the time since which a pod could be scheduled, as far as this watcher can find it out. No I/O, no state.

A pod could be scheduled since its creation, or since its last scheduling gate was removed. When this watcher first
sees a pod after that removal, the time of the removal is unknown and the creation may lie hours before it; such a pod
counts from the moment when it is first seen. Two traces show that a pod was gated: Kueue's labels and annotations, and
a PodScheduled condition without a transition time, which older API servers write on a gated pod and the scheduler
keeps as long as the status stays False. An API server of 1.36 writes the time of creation there (seen on a real one),
so after a restart of the watcher a pod that was gated by something else than Kueue counts from its creation.
"""

from collections.abc import Mapping

import msgspec

from exporter.cluster.kubernetes.records import Pod, PodScheduledCondition

_KUEUE_LABELS = ("kueue.x-k8s.io/managed", "kueue.x-k8s.io/podset", "kueue.x-k8s.io/pod-group-name")
_KUEUE_ANNOTATIONS = ("kueue.x-k8s.io/workload",)


def once_gated(
    labels: Mapping[str, str | None], annotations: Mapping[str, str | None], scheduled: PodScheduledCondition | None
) -> bool:
    """Whether a pod without scheduling gates shows traces of an earlier one."""
    if any(key in labels for key in _KUEUE_LABELS) or any(key in annotations for key in _KUEUE_ANNOTATIONS):
        return True
    return scheduled is not None and scheduled.status == "False" and scheduled.since is None


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
