"""Reads from a pod what holds it back: gates, groups, claims, volumes, and what its kubelet says. No I/O, no state."""

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Literal

from exporter.api_objects.wire import ObjectMeta
from exporter.cluster.kubernetes.objects import wire
from exporter.cluster.kubernetes.objects.records import PodClaim, PodPlan, SchedulingGroup
from exporter.cluster.kubernetes.pods.pod_requests import class_requests

QUEUE_GATES = ("kueue.x-k8s.io/",)
_GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""Labels by which scheduler-plugins know the pods of a group."""
_GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "pod-group-name")
"""Annotations by which Volcano and KAI know the pods of a group."""
_REJECTED = frozenset(
    {
        "UnexpectedAdmissionError",
        "TopologyAffinityError",
        "NodeAffinity",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotAdmittedReason",
        "EmptyPodSharedPoolError",
        "UnexpectedPredicateFailureType",
        "InvalidNodeInfo",
    }
)
"""Reasons with which a kubelet fails a pod that it does not admit, besides those of `_OUT_OF`.

A node that is shut down rejects every pod; that is no failed admission.
"""
_OUT_OF = "OutOf"
_IMAGE = frozenset(
    {"ImagePullBackOff", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
)
_IMAGE_ERROR = "ErrImage"
_ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
_FAILED_TO_START = frozenset({"StartError", "ContainerCannotRun"})
_USUAL = PodPlan()


def rejected(status: wire.PodStatus) -> bool:
    """Whether the pod failed because a kubelet did not admit it, so that it never ran."""
    reason = status.reason or ""
    return status.phase == "Failed" and (reason in _REJECTED or reason.startswith(_OUT_OF))


def plan(spec: wire.PodSpec, status: wire.PodStatus, meta: ObjectMeta) -> PodPlan:
    """Read what holds the pod back."""
    gates = spec.scheduling_gates or ()
    found = PodPlan(
        queued=bool(gates) and all(gate.name.startswith(QUEUE_GATES) for gate in gates),
        group=_group(spec, meta.labels or {}, meta.annotations or {}),
        nominated=intern(status.nominated_node_name or ""),
        has_volume_claims=any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes or ()),
        not_started=_not_started(status) if spec.node_name else "",
    )
    return _USUAL if found == _USUAL else found  # nearly all pods share one record


def _group(
    spec: wire.PodSpec, labels: Mapping[str, str | None], annotations: Mapping[str, str | None]
) -> SchedulingGroup:
    group, ref = spec.scheduling_group, spec.workload_ref
    if group is not None and group.pod_group_name:
        return SchedulingGroup(intern(group.pod_group_name), built_in=True)
    if ref is not None and ref.name:
        return SchedulingGroup(intern(f"{ref.name}/{ref.pod_group or ''}"), built_in=True)
    named = [labels.get(key) for key in _GROUP_LABELS] + [annotations.get(key) for key in _GROUP_ANNOTATIONS]
    return SchedulingGroup(intern(next(filter(None, named), "")))


def _not_started(status: wire.PodStatus) -> Literal["", "image_pull", "start_failed"]:
    """What keeps the containers from starting: the first one that cannot start decides."""
    for reason in _waiting_reasons([*(status.init_container_statuses or ()), *(status.container_statuses or ())]):
        if reason in _IMAGE or reason.startswith(_IMAGE_ERROR):
            return "image_pull"
        if reason not in _ON_ITS_WAY:
            return "start_failed"
    return ""


def _waiting_reasons(statuses: Iterable[wire.ContainerStatus]) -> Iterable[str]:
    for each in statuses:
        state = each.state or wire.ContainerState()
        if state.waiting is not None:
            yield state.waiting.reason or ""
        elif state.terminated is not None and state.terminated.reason in _FAILED_TO_START:
            yield state.terminated.reason


def claims(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[PodClaim, ...]:
    """Read the claims of the pod, and what it asks for by the names of DeviceClasses. Raises ValueError."""
    made = {each.name: each.resource_claim_name for each in status.resource_claim_statuses or ()}
    named = tuple(
        PodClaim(
            intern(each.resource_claim_name or made.get(each.name) or ""),
            intern(each.resource_claim_template_name or ""),
        )
        for each in spec.resource_claims or ()
        if each.name not in made or made[each.name]  # the status names no claim where the pod needs none
    )
    classes = class_requests(spec.containers or (), spec.init_containers or ())
    return named + tuple(PodClaim(device_class=intern(name), count=count) for name, count in classes)
