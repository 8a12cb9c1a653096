"""Converts decoded objects to the records that are kept, or to None when they have nothing to do with GPUs.

Every function raises ValueError when a field that is needed cannot be read.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from sys import intern

from exporter.cluster.kubernetes import overrides, quantity, records, schedulable_since, wire
from exporter.cluster.kubernetes.node_description import describe
from exporter.cluster.kubernetes.pod_requests import pod_requests
from exporter.cluster.kubernetes.workload import workload_of
from exporter.gpu_names import GpuResources

FINISHED = ("Succeeded", "Failed")
"""Phases of a pod whose containers have ended for good."""
_GPU_LABELS = ("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.present")
_MESSAGE_LENGTH = 2048
"""Characters of a condition's message that are kept: a cluster with many distinct taints could make megabytes.

The causes that decide about the pending reason come well before this length.
"""


def timestamp(text: str | None) -> float | None:
    """Return the seconds since the epoch of a time as the API server writes it (RFC 3339), None for none."""
    return datetime.fromisoformat(text).timestamp() if text else None


def pod(decoded: wire.WirePod, gpus: GpuResources) -> records.Pod | None:
    """Convert a GPU pod that is not finished; return None for every other pod."""
    spec, status, meta = decoded.spec, decoded.status or wire.PodStatus(), decoded.metadata
    if status.phase in FINISHED:
        return None
    requests = pod_requests(spec.containers or (), spec.init_containers or (), gpus)
    if not requests:
        return None
    labels, annotations = meta.labels or {}, meta.annotations or {}
    created = _created(meta)
    scheduled = _scheduled(status.conditions or ())
    gated = bool(spec.scheduling_gates)
    workload, workload_type = workload_of(meta.name, labels, meta.owner_references, created)
    return records.Pod(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        created=created,
        requests=tuple((intern(name), count) for name, count in requests),
        workload=intern(workload),
        workload_type=intern(workload_type),
        phase=intern(status.phase or ""),
        node=intern(spec.node_name or ""),
        deleting=meta.deletion_timestamp is not None,
        gated=gated,
        once_gated=not gated and schedulable_since.once_gated(labels, annotations, scheduled),
        scheduled=scheduled,
        started=timestamp(status.start_time),
        priority_class=intern(spec.priority_class_name or ""),
        overrides=overrides.pod_overrides(annotations, labels),
        constraints=_constraints(spec),
    )


def _created(meta: wire.ObjectMeta) -> float:
    created = timestamp(meta.creation_timestamp)
    if created is None or not meta.uid or not meta.name:
        raise ValueError("it has no creationTimestamp, uid or name")
    return created


def _scheduled(conditions: Iterable[wire.PodCondition]) -> records.PodScheduledCondition | None:
    for each in conditions:
        if each.type == "PodScheduled":
            message = intern((each.message or "")[:_MESSAGE_LENGTH])
            at = timestamp(each.last_transition_time)
            return records.PodScheduledCondition(intern(each.status), intern(each.reason or ""), message, at)
    return None


def _constraints(spec: wire.PodSpec) -> records.SchedulingConstraints:
    selector = tuple((intern(key), intern(value or "")) for key, value in (spec.node_selector or {}).items())
    return records.SchedulingConstraints(
        selector, _terms(spec), tuple(_toleration(each) for each in spec.tolerations or ())
    )


def _terms(spec: wire.PodSpec) -> tuple[tuple[records.SelectorRequirement, ...], ...] | None:
    affinity = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    if not affinity:
        return None
    return tuple(
        (*_requirements(term.match_expressions, field=False), *_requirements(term.match_fields, field=True))
        for term in affinity.node_selector_terms or ()
    )


def _requirements(decoded: list[wire.WireRequirement] | None, *, field: bool) -> Iterable[records.SelectorRequirement]:
    for each in decoded or ():
        values = tuple(intern(value) for value in each.values or ())
        yield records.SelectorRequirement(intern(each.key), intern(each.operator), values, field)


def _toleration(decoded: wire.WireToleration) -> records.Toleration:
    return records.Toleration(
        intern(decoded.key or ""),
        intern(decoded.operator or "Equal"),
        intern(decoded.value or ""),
        intern(decoded.effect or ""),
    )


def node(decoded: wire.WireNode, gpus: GpuResources) -> records.Node | None:
    """Convert a node with GPU resources or GPU labels; return None for every other node."""
    spec, status = decoded.spec or wire.NodeSpec(), decoded.status or wire.NodeStatus()
    labels = decoded.metadata.labels or {}
    capacity, allocatable = _amounts(status.capacity, gpus), _amounts(status.allocatable, gpus)
    if not (capacity or allocatable or any(key in labels for key in _GPU_LABELS)):
        return None
    if not decoded.metadata.name:
        raise ValueError("it has no name")
    return records.Node(
        name=intern(decoded.metadata.name),
        labels=_flat(labels),
        taints=tuple((intern(each.key), intern(each.value or ""), intern(each.effect)) for each in spec.taints or ()),
        ready=any(each.type == "Ready" and each.status == "True" for each in status.conditions or ()),
        cordoned=bool(spec.unschedulable),
        capacity=capacity,
        allocatable=allocatable,
        description=describe(labels),
    )


def _amounts(decoded: Mapping[str, str | int | float] | None, gpus: GpuResources) -> records.Amounts:
    return tuple(
        (intern(name), quantity.devices(value)) for name, value in sorted((decoded or {}).items()) if name in gpus
    )


def _flat(labels: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(intern(text or "") for pair in labels.items() for text in pair)


def namespace(decoded: wire.WireNamespace) -> records.Namespace:
    """Convert a namespace."""
    name, labels = decoded.metadata.name, decoded.metadata.labels or {}
    if not name:
        raise ValueError("it has no name")
    return records.Namespace(intern(name), overrides.namespace_overrides(labels))
