"""Converts pods, nodes and namespaces to the records that are kept, or to None when nothing needs them.

Every function raises ValueError when a field that is needed cannot be read.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern

from exporter.api_objects.timestamps import timestamp
from exporter.api_objects.wire import ObjectMeta
from exporter.api_objects.workload import workload_of
from exporter.cluster.config import Keys
from exporter.cluster.kubernetes.nodes.metadata_labels import namespace_values
from exporter.cluster.kubernetes.nodes.node_description import describe, labeled_with_gpus
from exporter.cluster.kubernetes.objects import overrides, quantity, records, wire
from exporter.cluster.kubernetes.pods import pod_state, schedulable_since
from exporter.cluster.kubernetes.pods.pod_failure import failure
from exporter.cluster.kubernetes.pods.pod_load import load, room
from exporter.cluster.kubernetes.pods.pod_requests import fraction, pod_requests
from exporter.gpu_names import GpuResources

_MESSAGE_LENGTH = 4096
"""Characters of a condition's message that are kept, without taints: a real one had 4,298 with them."""
_REQUESTS = "requests."
_TAINT = re.compile(r"\{[^{}]*\}")


def pod(decoded: wire.WirePod, gpus: GpuResources) -> records.Pod | records.OtherPod | None:
    """Convert a pod that requests GPUs or has claims, and is not finished or has failed.

    Of a pod without GPUs that is on a node and not finished, only what it takes there is kept; None for others.
    """
    spec, status, meta = decoded.spec, decoded.status or wire.PodStatus(), decoded.metadata
    if status.phase == "Succeeded":
        return None
    labels, annotations = meta.labels or {}, meta.annotations or {}
    requests = pod_requests(spec.containers or (), spec.init_containers or (), gpus) or fraction(annotations)
    claims = pod_state.claims(spec, status)
    if not requests and not claims:
        on_node = spec.node_name and status.phase != "Failed"
        return records.OtherPod(intern(spec.node_name or ""), _shared(load(spec))) if on_node else None
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
        once_gated=not gated and schedulable_since.once_gated(meta, created, scheduled),
        queue_group=intern(labels.get("kueue.x-k8s.io/pod-group-name") or ""),
        scheduled=scheduled,
        started=timestamp(status.start_time),
        priority_class=intern(spec.priority_class_name or ""),
        overrides=overrides.pod_overrides(annotations, labels),
        constraints=_constraints(spec),
        plan=pod_state.plan(spec, status, meta),
        claims=claims,
        load=_shared(load(spec)),
        rejected=pod_state.rejected(status),
        failure=failure(status) or "",
    )


@lru_cache(maxsize=4096)
def _shared(found: records.Load) -> records.Load:
    """One record for all pods and nodes that have equal ones: they are a handful on most clusters."""
    return found


def _created(meta: ObjectMeta) -> float:
    created = timestamp(meta.creation_timestamp)
    if created is None or not meta.uid or not meta.name:
        raise ValueError("it has no creationTimestamp, uid or name")
    return created


def _scheduled(conditions: Iterable[wire.PodCondition]) -> records.PodScheduledCondition | None:
    for each in conditions:
        if each.type == "PodScheduled":
            message = intern(_TAINT.sub("{}", each.message or "")[:_MESSAGE_LENGTH])
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


def node(decoded: wire.WireNode, gpus: GpuResources) -> records.Node:
    """Convert a node. One without GPUs is kept too: a pod can be bound to it, and DRA offers GPUs without resources."""
    spec, status = decoded.spec or wire.NodeSpec(), decoded.status or wire.NodeStatus()
    labels = decoded.metadata.labels or {}
    capacity, allocatable = _amounts(status.capacity, gpus), _amounts(status.allocatable, gpus)
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
        has_gpus=bool(capacity or allocatable or labeled_with_gpus(labels)),
        room=_shared(room(status.allocatable)),
        maintenance=overrides.node_maintenance(decoded.metadata.annotations or {}),
        problems=tuple(intern(each.type) for each in status.conditions or () if _is_problem(each)),
    )


_OF_THE_KUBELET = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})


def _is_problem(condition: wire.PodCondition) -> bool:
    """Conditions whose type ends in `Ready` are good when true, all others when false; `Unknown` tells nothing."""
    bad = "False" if condition.type.endswith("Ready") else "True"
    return condition.type not in _OF_THE_KUBELET and condition.status == bad


def _amounts(decoded: Mapping[str, str | int | float] | None, gpus: GpuResources) -> records.Amounts:
    return tuple(
        (intern(name), quantity.devices(value)) for name, value in sorted((decoded or {}).items()) if name in gpus
    )


def _flat(labels: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(intern(text or "") for pair in labels.items() for text in pair)


def namespace(decoded: wire.WireNamespace, keys: Keys) -> records.Namespace:
    """Convert a namespace; `keys` are those of the labels that say who pays for it."""
    name, labels = decoded.metadata.name, decoded.metadata.labels or {}
    if not name:
        raise ValueError("it has no name")
    return records.Namespace(intern(name), overrides.namespace_overrides(labels), namespace_values(labels, keys))


def quota(decoded: wire.WireQuota, gpus: GpuResources) -> records.ResourceQuota | None:
    """Convert a quota of GPUs; return None for one of other resources."""
    status, meta = decoded.status or wire.QuotaStatus(), decoded.metadata
    hard, used = _amounts(_requested(status.hard), gpus), _amounts(_requested(status.used), gpus)
    if not hard:
        return None
    if not meta.name:
        raise ValueError("it has no name")
    return records.ResourceQuota(intern(meta.namespace), meta.name, hard, used)


def _requested(decoded: Mapping[str, str | int | float] | None) -> dict[str, str | int | float]:
    """The amounts of `requests.` resources, which is the only form of a quota on extended resources."""
    return {
        name.removeprefix(_REQUESTS): value for name, value in (decoded or {}).items() if name.startswith(_REQUESTS)
    }
