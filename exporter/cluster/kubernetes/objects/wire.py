"""The few fields of pods, nodes and namespaces that are decoded from the API server's JSON.

These objects are not kept: each is converted to a record at once. Types are as lax as possible, because an unexpected
null or number would make the whole object unreadable.
"""

from typing import Any

import msgspec

from exporter.api_objects.wire import ObjectMeta, Quantities, ResourceRequirements, StringMap


class WireContainer(msgspec.Struct, gc=False, rename="camel"):
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None


class SchedulingGate(msgspec.Struct, gc=False):
    name: str = ""


class WireToleration(msgspec.Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class WireRequirement(msgspec.Struct, gc=False):
    key: str
    operator: str
    values: list[str] | None = None


class NodeSelectorTerm(msgspec.Struct, gc=False, rename="camel"):
    match_expressions: list[WireRequirement] | None = None
    match_fields: list[WireRequirement] | None = None


class NodeSelector(msgspec.Struct, gc=False, rename="camel"):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class WireNodeAffinity(msgspec.Struct, gc=False):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class WireAffinity(msgspec.Struct, gc=False, rename="camel"):
    node_affinity: WireNodeAffinity | None = None


class WirePodClaim(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class WireVolume(msgspec.Struct, gc=False, rename="camel"):
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class WireSchedulingGroup(msgspec.Struct, gc=False, rename="camel"):
    """`schedulingGroup` since Kubernetes 1.36, `workloadRef` in 1.35."""

    pod_group_name: str | None = None
    name: str | None = None
    pod_group: str | None = None


class PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None
    resource_claims: list[WirePodClaim] | None = None
    volumes: list[WireVolume] | None = None
    scheduling_group: WireSchedulingGroup | None = None
    workload_ref: WireSchedulingGroup | None = None
    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    priority_class_name: str | None = None
    node_selector: StringMap = None
    affinity: WireAffinity | None = None
    tolerations: list[WireToleration] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities = None


class PodCondition(msgspec.Struct, gc=False, rename="camel"):
    """A condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class ContainerWaiting(msgspec.Struct, gc=False):
    reason: str | None = None


class ContainerState(msgspec.Struct, gc=False):
    waiting: ContainerWaiting | None = None
    terminated: ContainerWaiting | None = None


class ContainerStatus(msgspec.Struct, gc=False):
    state: ContainerState | None = None


class PodClaimStatus(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[PodClaimStatus] | None = None
    conditions: list[PodCondition] | None = None
    start_time: str | None = None


class WirePod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus | None = None


class WireTaint(msgspec.Struct, gc=False):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(msgspec.Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[WireTaint] | None = None


class NodeStatus(msgspec.Struct, gc=False):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[PodCondition] | None = None


class WireNode(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class QuotaStatus(msgspec.Struct, gc=False):
    hard: Quantities = None
    used: Quantities = None


class WireQuota(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    status: QuotaStatus | None = None


class WireNamespace(msgspec.Struct, gc=False):
    metadata: ObjectMeta
