"""Objects as decoded turned into the records that are kept, or into nothing when they have no GPUs.

Every function raises ValueError when a field that is needed cannot be read.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from sys import intern

from exporter.cluster.kubernetes import overrides, quantity, records, schedulable_since, wire
from exporter.cluster.kubernetes.node_description import described
from exporter.cluster.kubernetes.pod_requests import pod_requests
from exporter.cluster.kubernetes.workload import workload_of
from exporter.gpu_names import GpuResources

_FINISHED = frozenset({"Succeeded", "Failed"})
_GPU_LABELS = ("nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.present")
_MESSAGE_LENGTH = 2048
"""The grammar of a message is decided well before this; a cluster of many distinct taints could make megabytes."""


def timestamp(text: str | None) -> float | None:
    """Seconds since the epoch of a time as the API server writes it."""
    return datetime.fromisoformat(text).timestamp() if text else None


def pod(found: wire.Pod, gpus: GpuResources) -> records.Pod | None:
    """A GPU pod that is not finished; None for every other pod."""
    spec, status, meta = found.spec, found.status or wire.PodStatus(), found.metadata
    if status.phase in _FINISHED:
        return None
    requests = pod_requests(spec.containers or (), spec.init_containers or (), gpus)
    if not requests:
        return None
    labels, annotations = meta.labels or {}, meta.annotations or {}
    created = _created(meta)
    scheduled = _scheduled(status.conditions or ())
    gated = bool(spec.scheduling_gates)
    workload, kind = workload_of(meta.name, labels, meta.owner_references, created)
    return records.Pod(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        created=created,
        requests=tuple((intern(name), count) for name, count in requests),
        workload=intern(workload),
        workload_type=intern(kind),
        phase=intern(status.phase or ""),
        node=intern(spec.node_name or ""),
        deleting=meta.deletion_timestamp is not None,
        gated=gated,
        once_gated=not gated and schedulable_since.once_gated(labels, annotations, scheduled),
        scheduled=scheduled,
        started=timestamp(status.start_time),
        priority_class=intern(spec.priority_class_name or ""),
        switches=overrides.pod_switches(annotations, labels),
        needs=_needs(spec),
    )


def _created(meta: wire.Meta) -> float:
    created = timestamp(meta.creation_timestamp)
    if created is None or not meta.uid or not meta.name:
        raise ValueError("it has no creationTimestamp, uid or name")
    return created


def _scheduled(conditions: Iterable[wire.Condition]) -> records.Scheduled | None:
    for each in conditions:
        if each.type == "PodScheduled":
            message = intern((each.message or "")[:_MESSAGE_LENGTH])
            at = timestamp(each.last_transition_time)
            return records.Scheduled(intern(each.status), intern(each.reason or ""), message, at)
    return None


def _needs(spec: wire.PodSpec) -> records.Needs:
    selector = tuple((intern(key), intern(value or "")) for key, value in (spec.node_selector or {}).items())
    return records.Needs(selector, _terms(spec), tuple(_tolerance(each) for each in spec.tolerations or ()))


def _terms(spec: wire.PodSpec) -> tuple[tuple[records.Match, ...], ...] | None:
    affinity = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    if not affinity:
        return None
    return tuple(
        (*_matches(term.match_expressions, field=False), *_matches(term.match_fields, field=True))
        for term in affinity.node_selector_terms or ()
    )


def _matches(found: list[wire.Requirement] | None, *, field: bool) -> Iterable[records.Match]:
    for each in found or ():
        values = tuple(intern(value) for value in each.values or ())
        yield records.Match(intern(each.key), intern(each.operator), values, field)


def _tolerance(found: wire.Toleration) -> records.Tolerance:
    return records.Tolerance(
        intern(found.key or ""),
        intern(found.operator or "Equal"),
        intern(found.value or ""),
        intern(found.effect or ""),
    )


def node(found: wire.Node, gpus: GpuResources) -> records.Node | None:
    """A node with GPU resources or GPU labels; None for every other node."""
    spec, status = found.spec or wire.NodeSpec(), found.status or wire.NodeStatus()
    labels = found.metadata.labels or {}
    capacity, allocatable = _amounts(status.capacity, gpus), _amounts(status.allocatable, gpus)
    if not (capacity or allocatable or any(key in labels for key in _GPU_LABELS)):
        return None
    if not found.metadata.name:
        raise ValueError("it has no name")
    return records.Node(
        name=intern(found.metadata.name),
        labels=_flat(labels),
        taints=tuple((intern(each.key), intern(each.value or ""), intern(each.effect)) for each in spec.taints or ()),
        ready=any(each.type == "Ready" and each.status == "True" for each in status.conditions or ()),
        cordoned=bool(spec.unschedulable),
        capacity=capacity,
        allocatable=allocatable,
        described=described(labels),
    )


def _amounts(found: Mapping[str, str | int | float] | None, gpus: GpuResources) -> records.Amounts:
    return tuple(
        (intern(name), quantity.devices(value)) for name, value in sorted((found or {}).items()) if name in gpus
    )


def _flat(labels: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(intern(text or "") for pair in labels.items() for text in pair)


def namespace(found: wire.Namespace) -> records.Namespace:
    if not found.metadata.name:
        raise ValueError("it has no name")
    return records.Namespace(intern(found.metadata.name), overrides.namespace_switches(found.metadata.labels or {}))
