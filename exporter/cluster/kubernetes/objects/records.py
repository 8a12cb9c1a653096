"""The records that are kept of Kubernetes objects: small, immutable, with shared strings.

Only objects that have to do with GPUs become records; of 100,000 pods usually a few thousand.
"""

from typing import Literal

import msgspec

Pairs = tuple[tuple[str, str], ...]
"""Keys and values."""
Amounts = tuple[tuple[str, int], ...]
"""Resource names and numbers of devices."""
Taint = tuple[str, str, str]
"""(key, value, effect)."""


class Load(msgspec.Struct, frozen=True, gc=False):
    """What pods take of a node besides GPUs, or what a node has of it."""

    cpu: int = 0
    """Thousandths of a CPU."""
    memory: int = 0
    """Bytes."""
    pods: int = 1


class OtherPod(msgspec.Struct, frozen=True, gc=False):
    """A pod without GPUs on a node: it takes CPUs and memory that pods with GPUs need there."""

    node: str
    load: Load


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


class PodClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim of a pod for devices: one of `claim`, `template` and `device_class` is set, or only `template` so far."""

    claim: str = ""
    """The name of the ResourceClaim, in the pod's namespace."""
    template: str = ""
    """The name of the ResourceClaimTemplate of which the claim is made."""
    device_class: str = ""
    """The DeviceClass that the pod asks for by the name of a resource; the scheduler makes the claim."""
    count: int = 0
    """Devices of that class."""


class SchedulingGroup(msgspec.Struct, frozen=True, gc=False):
    """The group of pods that a pod is scheduled with."""

    name: str = ""
    built_in: bool = False
    """Whether it is a group of Kubernetes itself (1.35), for which the scheduler writes no condition while it waits."""


class PodPlan(msgspec.Struct, frozen=True, gc=False):
    """What holds a pod back besides its constraints. Pods of one workload mostly have equal ones."""

    queued: bool = False
    """Whether all its scheduling gates are those of a queue."""
    group: SchedulingGroup = SchedulingGroup()
    nominated: str = ""
    """The node on which the scheduler keeps a place for the pod."""
    has_volume_claims: bool = False
    not_started: Literal["", "image_pull", "start_failed"] = ""
    """What the kubelet says of containers that cannot start."""
    claim_missing: bool = False
    """Whether a claim of the pod does not exist. Set once all claims are known."""


class Overrides(msgspec.Struct, frozen=True, gc=False):
    """The values of gpugauge's annotations and labels, as written; empty where there is none."""

    workload_class: str = ""
    exemption: str = ""
    threshold: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod that requests GPUs, or has claims that may be for GPUs. It is not finished, or it has failed."""

    uid: str
    namespace: str
    name: str
    created: float
    """Seconds since the epoch."""
    requests: Amounts
    """Devices by resource name, by the scheduler's rule; empty where the pod has only claims that are not known yet."""
    workload: str
    workload_type: str
    phase: str = ""
    node: str = ""
    deleting: bool = False
    gated: bool = False
    """Whether the pod has a scheduling gate now."""
    once_gated: bool = False
    """Whether the pod has no scheduling gate now and shows traces of an earlier one."""
    queue_group: str = ""
    """The group of pods that Kueue admits together, whose Workload has the same name; empty for a single pod."""
    scheduled: PodScheduledCondition | None = None
    started: float | None = None
    """When the kubelet accepted the pod, in seconds since the epoch."""
    priority_class: str = ""
    overrides: Overrides = Overrides()
    constraints: SchedulingConstraints = SchedulingConstraints()
    plan: PodPlan = PodPlan()
    claims: tuple[PodClaim, ...] = ()
    load: Load = Load()
    rejected: bool = False
    """Whether the pod failed because a kubelet did not admit it."""
    failure: str = ""
    """How the pod ended, where it ran and failed: a `PodFailureReason`."""
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
    """A node. `has_gpus` tells whether it offers GPUs, or should according to its labels."""

    name: str
    labels: tuple[str, ...]
    """Keys and values in turn, which takes a tenth of a dictionary's memory."""
    taints: tuple[Taint, ...]
    ready: bool
    cordoned: bool
    capacity: Amounts
    allocatable: Amounts
    description: NodeDescription = NodeDescription()
    has_gpus: bool = True
    room: Load = Load(pods=0)
    """What it has for pods besides GPUs; 0 where it is not known."""
    maintenance: str = ""
    """The annotation that announces planned maintenance, as written."""
    problems: tuple[str, ...] = ()
    """The types of conditions that tell of a problem, without those of the kubelet."""


class ResourceQuota(msgspec.Struct, frozen=True, gc=False):
    """What a quota allows of GPUs in a namespace, and what is used of it."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A namespace, the overrides that its labels set, and who pays for it."""

    name: str
    overrides: Overrides = Overrides()
    owners: tuple[str, ...] = ()
    """The values of the labels `metadata_labels.NAMESPACE_NAMES`."""


ClusterObject = msgspec.Struct
"""Any of these records, and those of `devices.py`, `controllers.py` and `events.py`."""
