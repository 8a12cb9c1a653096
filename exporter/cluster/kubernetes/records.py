"""The records that are kept of Kubernetes objects: small, immutable, with shared strings.

Only objects that have to do with GPUs become records; of 100,000 pods usually a few thousand.
"""

import msgspec

Pairs = tuple[tuple[str, str], ...]
"""Keys and values."""
Amounts = tuple[tuple[str, int], ...]
"""Resource names and numbers of devices."""


class SelectorRequirement(msgspec.Struct, frozen=True, gc=False):
    """One requirement of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False
    """Whether it is a requirement on the node's name (`matchFields`) instead of a label."""


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """One toleration of a pod; an empty key or effect matches every key or effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SchedulingConstraints(msgspec.Struct, frozen=True, gc=False):
    """What a pod requires of a node besides resources. Pods of one workload mostly have equal constraints."""

    selector: Pairs = ()
    terms: tuple[tuple[SelectorRequirement, ...], ...] | None = None
    """Alternatives, each a conjunction; None when the pod has no required node affinity."""
    tolerations: tuple[Toleration, ...] = ()


class PodScheduledCondition(msgspec.Struct, frozen=True, gc=False):
    """The pod's PodScheduled condition."""

    status: str
    reason: str
    message: str
    since: float | None
    """When the status last changed, in seconds since the epoch; None where the API server gave no time."""


class Overrides(msgspec.Struct, frozen=True, gc=False):
    """The values of gpugauge's annotations and labels, as written; empty where there is none."""

    workload_class: str = ""
    exemption: str = ""
    threshold: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod that requests GPUs and is not finished."""

    uid: str
    namespace: str
    name: str
    created: float
    """Seconds since the epoch."""
    requests: Amounts
    """Devices by resource name, by the scheduler's rule; never empty."""
    workload: str
    workload_type: str
    phase: str = ""
    node: str = ""
    deleting: bool = False
    gated: bool = False
    """Whether the pod has a scheduling gate now."""
    once_gated: bool = False
    """Whether the pod has no scheduling gate now and shows traces of an earlier one."""
    scheduled: PodScheduledCondition | None = None
    started: float | None = None
    """When the kubelet accepted the pod, in seconds since the epoch."""
    priority_class: str = ""
    overrides: Overrides = Overrides()
    constraints: SchedulingConstraints = SchedulingConstraints()
    schedulable_since: float | None = None
    """Seconds since the epoch; None while gated. Set by the store, which sees when scheduling gates are removed."""


class NodeDescription(msgspec.Struct, frozen=True, gc=False):
    """What a node's labels state about its GPUs, spelled as our label values are. Nodes of one pool have equal ones."""

    model: str = ""
    gpu_count: str = ""
    sharing: str = ""
    mig_strategy: str = ""
    pool: str = ""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node that has GPUs, or should have some according to its labels."""

    name: str
    labels: tuple[str, ...]
    """Keys and values in turn, which takes a tenth of a dictionary's memory."""
    taints: tuple[tuple[str, str, str], ...]
    """(key, value, effect)."""
    ready: bool
    cordoned: bool
    capacity: Amounts
    allocatable: Amounts
    description: NodeDescription = NodeDescription()


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A namespace and the overrides that its labels set."""

    name: str
    overrides: Overrides = Overrides()


ClusterObject = Pod | Node | Namespace
