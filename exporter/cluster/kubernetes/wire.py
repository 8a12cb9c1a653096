"""The few fields of pods, nodes and namespaces that are decoded from the API server's JSON.

Nothing here is kept: an object is turned into a record at once. Fields are as lax as they can be, since an
unexpected null or number must not cost the object.
"""

import msgspec

Pairs = dict[str, str | None] | None
Quantities = dict[str, str | int | float] | None


class Owner(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Pairs = None
    annotations: Pairs = None
    owner_references: list[Owner] | None = None


class Requests(msgspec.Struct, gc=False):
    requests: Quantities = None
    limits: Quantities = None


class Container(msgspec.Struct, gc=False, rename="camel"):
    resources: Requests | None = None
    restart_policy: str | None = None


class Gate(msgspec.Struct, gc=False):
    name: str = ""


class Toleration(msgspec.Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Requirement(msgspec.Struct, gc=False):
    key: str
    operator: str
    values: list[str] | None = None


class Term(msgspec.Struct, gc=False, rename="camel"):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(msgspec.Struct, gc=False, rename="camel"):
    node_selector_terms: list[Term] | None = None


class NodeAffinity(msgspec.Struct, gc=False):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(msgspec.Struct, gc=False, rename="camel"):
    node_affinity: NodeAffinity | None = None


class PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    scheduling_gates: list[Gate] | None = None
    priority_class_name: str | None = None
    node_selector: Pairs = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None


class Condition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    conditions: list[Condition] | None = None
    start_time: str | None = None


class Pod(msgspec.Struct, gc=False):
    metadata: Meta
    spec: PodSpec
    status: PodStatus | None = None


class Taint(msgspec.Struct, gc=False):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(msgspec.Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(msgspec.Struct, gc=False):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[Condition] | None = None


class Node(msgspec.Struct, gc=False):
    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Namespace(msgspec.Struct, gc=False):
    metadata: Meta


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class RawPage(msgspec.Struct, gc=False):
    """One page of a list whose items are still text."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class Event(msgspec.Struct, gc=False):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class Status(msgspec.Struct, gc=False):
    """What the API server says when it refuses."""

    code: int = 0
    reason: str = ""
    message: str = ""


class JustMeta(msgspec.Struct, gc=False):
    """Who an object is, when the rest of it cannot be read."""

    metadata: Meta
