"""Joins the kubelet's allocations with what is known of the pods: uids, which have finished, and which GPUs they have.

No I/O.
"""

from collections.abc import Collection
from itertools import groupby
from operator import itemgetter

from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.attribution.pods.scheduler_placement import PodsByName, has_group, placed, users_of_fractions
from exporter.node.attribution.pods.unlisted_devices import unlisted
from exporter.node.pods.pod import NodePod, NodePods

PHASE_SECONDS = 60.0
"""How old the knowledge may be that a pod has finished: later another one may run under its name."""


def joined(
    allocations: Allocations, pods: NodePods, reservation_namespaces: Collection[str] = (), *, phases: bool = True
) -> Allocations:
    """Return the allocations of pods that have not finished, with the uids of their pods.

    Kubelets before 1.34 list a finished pod for as long as it exists. With `phases` false it is not known whether a pod
    has finished. A pod of which nothing is known stays as it is listed. Where the kubelet's ids do not say which GPUs a
    pod has, schedulers may, and devices that it does not list are added.
    """
    known = {(pod.namespace, pod.name): pod for pod in pods}
    listed = _with_uids(allocations, known, phases=phases)
    users = users_of_fractions(listed, known, reservation_namespaces)
    return tuple(sorted((*placed(listed, known), *users, *unlisted(listed, pods))))


def _with_uids(allocations: Allocations, known: PodsByName, *, phases: bool) -> list[Allocation]:
    found: list[Allocation] = []
    for (namespace, name), group in groupby(allocations, key=itemgetter(0, 1)):  # sorted by these
        pod = known.get((namespace, name))
        if pod is None:
            found += group
        elif not (phases and pod.finished):
            uid = pod.uid
            found += [each._replace(pod_uid=uid) for each in group]
    return found


def concerning(allocations: Allocations, pods: NodePods) -> NodePods:
    """The pods that the kubelet lists with GPUs, or that may have one that it does not list: others change nothing.

    A node has many pods that change, of which few have to do with GPUs.
    """
    listed = {(each.namespace, each.pod) for each in allocations}
    return tuple(pod for pod in pods if (pod.namespace, pod.name) in listed or _may_have_gpus(pod))


def _may_have_gpus(pod: NodePod) -> bool:
    return has_group(pod) or any(container.requests for container in pod.containers)
