"""Joins the kubelet's allocations with what is known of the pods: their uids, and which have finished. No I/O."""

from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.pods.pod import NodePods

PHASE_SECONDS = 60.0
"""How old the knowledge may be that a pod has finished: later another one may run under its name."""


def joined(allocations: Allocations, pods: NodePods, *, phases: bool = True) -> Allocations:
    """Return the allocations with the uids of their pods, without those of pods that have finished.

    Kubelets before 1.34 list a finished pod for as long as it exists. With `phases` false it is not known whether a pod
    has finished. A pod of which nothing is known stays as it is listed.
    """
    known = {(pod.namespace, pod.name): pod for pod in pods}
    found: list[Allocation] = []
    for allocation in allocations:
        pod = known.get((allocation.namespace, allocation.pod))
        if pod is None:
            found.append(allocation)
        elif not (phases and pod.finished):
            found.append(allocation._replace(pod_uid=pod.uid))
    return tuple(sorted(found))
