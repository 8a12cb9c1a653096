"""Explains why a GPU pod is pending: what it asks for, and what keeps it off each node with GPUs. No I/O, no state."""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporter.cluster.kubernetes.objects.records import Amounts, Node, Pod
from exporter.cluster.scheduling.nodes.free_capacity import NodeDevices, NodeGroup, node_groups, requested
from exporter.cluster.scheduling.nodes.node_fit import Fit, fit
from exporter.cluster.scheduling.nodes.node_selection import available, taint_text, untolerated
from exporter.cluster.scheduling.reasons.pending_pods import ClusterObjects, PendingPod
from exporter.cluster.scheduling.reasons.pending_reason import PendingReason

_ORDER = (
    Fit.ROOM,
    Fit.FULL,
    Fit.FRAGMENTED,
    Fit.GPUS_UNAVAILABLE,
    Fit.NODES_UNAVAILABLE,
    Fit.TAINTED,
    Fit.TOO_LARGE,
    Fit.NOT_SELECTED,
    Fit.UNKNOWN_RESOURCE,
)
"""Nodes that are nearest to taking the pod come first."""
_DESCRIBE = "kubectl describe pod -n {namespace} {pod}"
_NODES = "kubectl get nodes -L nvidia.com/gpu.product"
_CHECKS: Mapping[PendingReason, tuple[str, ...]] = {
    PendingReason.GATED: ("kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.schedulingGates}}'",),
    PendingReason.QUEUED: ("kubectl get workloads -n {namespace}",),
    PendingReason.GANG: ("kubectl get podgroups -n {namespace}", _DESCRIBE),
    PendingReason.NOT_TRIED: ("kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.schedulerName}}'",),
    PendingReason.NODE_SELECTOR_OR_AFFINITY: ("kubectl get nodes --show-labels", _DESCRIBE),
    PendingReason.TAINT: ("kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",),
    PendingReason.VOLUME: ("kubectl get pvc -n {namespace}", _DESCRIBE),
    PendingReason.NODE_UNAVAILABLE: ("kubectl get nodes", "kubectl describe node <node>"),
    PendingReason.GPU_UNAVAILABLE: ("gpugauge explain node/<node>", "kubectl describe node <node>"),
    PendingReason.CLAIM: ("kubectl get resourceclaims -n {namespace}", "kubectl get resourceslices"),
    PendingReason.QUOTA: ("kubectl describe resourcequota -n {namespace}", _DESCRIBE),
    PendingReason.PREEMPTING: ("kubectl get pods -A --field-selector spec.nodeName={nominated}",),
    PendingReason.FRAGMENTATION: (_NODES, "kubectl get pods -A -o wide --field-selector status.phase=Running"),
}
"""Commands that show the cause; for every other reason the description of the pod does."""


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """What keeps the pod off some nodes."""

    text: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a pod is pending."""

    namespace: str
    pod: str
    reason: PendingReason
    requests: Amounts
    since: float
    """Seconds since the epoch."""
    node: str
    """The node that it is bound to; empty where there is none."""
    message: str
    """What the scheduler wrote."""
    findings: tuple[NodeFinding, ...]
    checks: tuple[str, ...]
    """Commands that show more."""


def explain(pending: PendingPod, objects: ClusterObjects) -> Explanation:
    """Explain one pending pod."""
    pod, reason = pending.pod, pending.reason
    values = {
        "namespace": shlex.quote(pod.namespace),
        "pod": shlex.quote(pod.name),
        "nominated": shlex.quote(pod.plan.nominated) if pod.plan.nominated else "<node>",
    }
    return Explanation(
        pod.namespace,
        pod.name,
        reason,
        pod.requests,
        pending.since,
        pod.node,
        pod.scheduled.message if pod.scheduled is not None else "",
        () if pod.node else tuple(_findings(pod, objects)),
        tuple(check.format_map(values) for check in _CHECKS.get(reason, (_DESCRIBE,))),
    )


def _findings(pod: Pod, objects: ClusterObjects) -> Iterable[NodeFinding]:
    """Group the nodes with GPUs by what keeps the pod off them."""
    requests = requested(objects.pods)
    found: dict[tuple[int, str], list[str]] = defaultdict(list)
    for node in objects.nodes or ():
        for group in node_groups([node], requests, [pod], objects.devices):
            result = fit(pod, [group])
            found[_ORDER.index(result), _text(result, pod, node, group)].append(node.name)
    for (_, text), nodes in sorted(found.items()):
        yield NodeFinding(text, tuple(sorted(nodes)))


def _text(result: Fit, pod: Pod, node: Node, group: NodeGroup) -> str:
    (devices,) = group.devices
    match result:
        case Fit.ROOM:
            return f"{_amounts(devices, pod)}: enough"
        case Fit.FULL | Fit.FRAGMENTED:
            return f"{_amounts(devices, pod)}: too few"
        case Fit.TOO_LARGE:
            return f"{_amounts(devices, pod)}: too few even when all are free"
        case Fit.NOT_SELECTED:
            return "not allowed by node selector or node affinity"
        case Fit.TAINTED:
            taints = ", ".join(map(taint_text, untolerated(pod.constraints, group.taints)))
            return f"taint that the pod does not tolerate: {taints}"
        case Fit.NODES_UNAVAILABLE:
            return f"not usable: {_state(pod, node)}"
        case Fit.GPUS_UNAVAILABLE:
            return f"{_amounts(devices, pod)}: its GPUs are not registered, not healthy or being changed"
        case Fit.UNKNOWN_RESOURCE:
            offered = ", ".join(name for name, count in devices.capacity if count) or "no GPU resource"
            return f"does not offer it, but {offered}"


def _amounts(devices: NodeDevices, pod: Pod) -> str:
    free, allocatable = dict(devices.free), dict(devices.allocatable)
    return ", ".join(f"{free.get(name, 0)} of {allocatable.get(name, 0)} {name} free" for name, _ in pod.requests)


def _state(pod: Pod, node: Node) -> str:
    if node.cordoned:
        return "cordoned"
    if not node.ready:
        return "not ready"
    keys = (taint[0] for taint in node.taints if not available(pod.constraints, _Only((taint,))))
    return f"tainted with {', '.join(keys)}"


@dataclass(frozen=True, slots=True)
class _Only:
    """A node with nothing but these taints."""

    taints: tuple[tuple[str, str, str], ...]
    ready: bool = True
    cordoned: bool = False
