"""Finds out since when pods that Kueue has admitted could be scheduled: Kueue itself keeps that. No I/O, no state."""

from collections.abc import Iterable

import msgspec

from exporter.cluster.kubernetes.converting.controllers import Controller
from exporter.cluster.kubernetes.objects.records import Pod


def with_admission(pods: Iterable[Pod], controllers: Iterable[Controller]) -> tuple[Pod, ...]:
    """Return the pods; those whose scheduling gates Kueue has removed are schedulable since it admitted them.

    A watcher that starts later has not seen the gates removed, and would count from when it first saw the pod.
    """
    groups: dict[tuple[str, str], float] = {}
    single: dict[tuple[str, str], float] = {}
    for each in controllers:
        if each.kind == "Workload" and each.admitted is not None:
            groups[each.namespace, each.name] = each.admitted
            if each.owner[0] == "Pod":
                single[each.namespace, each.owner[1]] = each.admitted
    if not groups:
        return tuple(pods)
    return tuple(_with_admission(pod, groups, single) if pod.once_gated else pod for pod in pods)


def _with_admission(pod: Pod, groups: dict[tuple[str, str], float], single: dict[tuple[str, str], float]) -> Pod:
    if pod.queue_group:
        admitted = groups.get((pod.namespace, pod.queue_group))
    else:
        admitted = single.get((pod.namespace, pod.name))
    if admitted is None or pod.schedulable_since is None or not pod.created <= admitted < pod.schedulable_since:
        return pod
    return msgspec.structs.replace(pod, schedulable_since=admitted)
