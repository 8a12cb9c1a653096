"""Since when a pod could be scheduled, as far as this watcher can know.

That is when it was created, or when its last scheduling gate was seen to go. A pod that is first met without gates
but was once gated has waited since first sight: when its gate went was not seen, and its creation may lie hours
before. What tells that it was gated: Kueue marks its pods, and older API servers write a gated pod's PodScheduled
condition without a transition time, which the scheduler keeps as long as the status stays False. An API server of
1.36 writes the time of creation (seen on a real one): a pod that was gated by something else than Kueue then counts
from its creation after a restart of the watcher.
"""

from collections.abc import Mapping

import msgspec

from exporter.cluster.kubernetes.records import Pod, Scheduled

_KUEUE_LABELS = ("kueue.x-k8s.io/managed", "kueue.x-k8s.io/podset", "kueue.x-k8s.io/pod-group-name")
_KUEUE_ANNOTATIONS = ("kueue.x-k8s.io/workload",)


def once_gated(
    labels: Mapping[str, str | None], annotations: Mapping[str, str | None], scheduled: Scheduled | None
) -> bool:
    """Whether a pod without gates shows traces of an earlier one."""
    if any(key in labels for key in _KUEUE_LABELS) or any(key in annotations for key in _KUEUE_ANNOTATIONS):
        return True
    return scheduled is not None and scheduled.status == "False" and scheduled.since is None


def with_since(pod: Pod, before: Pod | None, now: float) -> Pod:
    """The pod with `schedulable_since`; `before` is what was known of the same name, maybe another pod."""
    return msgspec.structs.replace(pod, schedulable_since=_since(pod, before, now))


def _since(pod: Pod, before: Pod | None, now: float) -> float | None:
    if pod.gated:
        return None
    if before is not None and before.uid == pod.uid:
        return now if before.schedulable_since is None else before.schedulable_since
    return now if pod.once_gated else pod.created
