"""What is kept of each object: small immutable records with shared strings.

Only objects that have to do with GPUs become records; of 100,000 pods usually a few thousand.
"""

import msgspec

Pairs = tuple[tuple[str, str], ...]
Amounts = tuple[tuple[str, int], ...]


class Match(msgspec.Struct, frozen=True, gc=False):
    """One requirement of a node selector term; `field` says that it is on the node's name, not on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False


class Tolerance(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Needs(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks of a node besides resources; pods of one workload share it."""

    selector: Pairs = ()
    terms: tuple[tuple[Match, ...], ...] | None = None
    """Alternatives, each a conjunction; None when the pod has no required node affinity."""
    tolerations: tuple[Tolerance, ...] = ()


class Scheduled(msgspec.Struct, frozen=True, gc=False):
    """The pod's PodScheduled condition."""

    status: str
    reason: str
    message: str
    since: float | None
    """Seconds since the epoch of the last change of status; None where the API server gave none."""


class Switches(msgspec.Struct, frozen=True, gc=False):
    """What annotations and labels say, as written; empty where there is nothing."""

    class_: str = ""
    optout: str = ""
    threshold: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod that asks for GPUs and is not finished."""

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
    once_gated: bool = False
    """Something about the pod says that a gate held it before this watcher saw it without one."""
    scheduled: Scheduled | None = None
    started: float | None = None
    """When the kubelet took it on, seconds since the epoch."""
    priority_class: str = ""
    switches: Switches = Switches()
    needs: Needs = Needs()
    schedulable_since: float | None = None
    """Seconds since the epoch; None while gated. Filled in by the table, which sees gates go."""


class Description(msgspec.Struct, frozen=True, gc=False):
    """What a node's labels say of its GPUs, in the words of the page; nodes of one pool share it."""

    model: str = ""
    gpu_count: str = ""
    sharing: str = ""
    mig_strategy: str = ""
    pool: str = ""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node that has, or says by its labels that it should have, GPUs."""

    name: str
    labels: tuple[str, ...]
    """Keys and values in turn: a tenth of a dictionary's size."""
    taints: tuple[tuple[str, str, str], ...]
    """(key, value, effect)."""
    ready: bool
    cordoned: bool
    capacity: Amounts
    allocatable: Amounts
    described: Description = Description()


class Namespace(msgspec.Struct, frozen=True, gc=False):
    name: str
    switches: Switches = Switches()


Record = Pod | Node | Namespace
