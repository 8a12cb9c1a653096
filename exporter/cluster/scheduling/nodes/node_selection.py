"""Checks which nodes a pod may run on, by the scheduler's rules of node selectors, node affinity and taints."""

from collections.abc import Mapping
from typing import Protocol

from exporter.cluster.kubernetes.objects.records import SchedulingConstraints, SelectorRequirement, Taint, Toleration
from exporter.gpu_names import canonical_model

ANY_MODEL = "any"
PRODUCT = "nvidia.com/gpu.product"
"""The label by which pods select nodes with one GPU model."""
HOSTNAME = "kubernetes.io/hostname"
CORDON_TAINT: Taint = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
NOT_READY_TAINT: Taint = ("node.kubernetes.io/not-ready", "", "NoSchedule")
"""The taints that stand for a cordon and for a node that is not ready: who tolerates them may use such a node."""
_STATE_PREFIXES = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "readiness.k8s.io/",
    "karpenter.sh/disrupt",
    "karpenter.sh/unregistered",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "cloud.google.com/impending-node-termination",
    "aws-node-termination-handler/",
    "kubernetes.azure.com/scalesetpriority-evict",
)
_STATE_SUFFIXES = ("/agent-not-ready", "/not-ready", "/unschedulable", "/out-of-service", "/unhealthy")
"""Taints that speak of the state of a node: set by Kubernetes, cloud providers, autoscalers and agents on nodes."""


class Schedulability(Protocol):
    """What decides whether a node can be used besides its labels."""

    @property
    def taints(self) -> tuple[Taint, ...]: ...

    @property
    def ready(self) -> bool: ...

    @property
    def cordoned(self) -> bool: ...


def selected(constraints: SchedulingConstraints, name: str, labels: Mapping[str, str]) -> bool:
    """Whether node selector and required node affinity allow the node. A term without requirements matches nothing."""
    if any(labels.get(key) != value for key, value in constraints.selector):
        return False
    if constraints.terms is None:
        return True
    return any(term and all(_matches(each, name, labels) for each in term) for term in constraints.terms)


def _matches(requirement: SelectorRequirement, name: str, labels: Mapping[str, str]) -> bool:
    value = name if requirement.field else labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement.operator, value, requirement.values[0] if requirement.values else "")
        case _:
            return False


def _compares(operator: str, left: str | None, right: str) -> bool:
    try:
        return int(left or "") > int(right) if operator == "Gt" else int(left or "") < int(right)
    except ValueError:
        return False


def tolerated(constraints: SchedulingConstraints, taints: tuple[Taint, ...]) -> bool:
    """Whether the pod tolerates every taint that keeps pods away, except those that speak of the node's own state."""
    return all(_of_state(taint[0]) or _tolerates_one(constraints, taint) for taint in taints)


def untolerated(constraints: SchedulingConstraints, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Somebody's taints that the pod does not tolerate."""
    return tuple(taint for taint in taints if not tolerated(constraints, (taint,)))


def taint_text(taint: Taint) -> str:
    """Write a taint as kubectl does."""
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def available(constraints: SchedulingConstraints, node: Schedulability) -> bool:
    """Whether the node is in a state in which the pod can use it: most pods only a ready one that is not cordoned."""
    states = [taint for taint in node.taints if _of_state(taint[0])]
    if node.cordoned:
        states.append(CORDON_TAINT)
    if not node.ready:
        states.append(NOT_READY_TAINT)
    return all(_tolerates_one(constraints, taint) for taint in states)


def _of_state(key: str) -> bool:
    return key.startswith(_STATE_PREFIXES) or key.endswith(_STATE_SUFFIXES)


def _tolerates_one(constraints: SchedulingConstraints, taint: Taint) -> bool:
    return taint[2] == "PreferNoSchedule" or any(_tolerates(each, taint) for each in constraints.tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    key, value, effect = taint
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.key) and toleration.value == value
        case "Gt" | "Lt":  # Kubernetes 1.35: compares the value of the taint with that of the toleration
            return bool(toleration.key) and _compares(toleration.operator, value, toleration.value)
        case _:
            return False


def demanded_model(constraints: SchedulingConstraints) -> str:
    """The one GPU model that selector or required affinity demand, spelled as the label `model`; `any` without one."""
    demanded = {value for key, value in constraints.selector if key == PRODUCT}
    if not demanded and constraints.terms:
        for term in constraints.terms:
            products = [each.values for each in term if each.key == PRODUCT and each.operator == "In"]
            if not products:
                return ANY_MODEL
            demanded.update(*products)
    models = {canonical_model(product) for product in demanded}
    return models.pop() if len(models) == 1 else ANY_MODEL


def keys_of(constraints: SchedulingConstraints) -> set[str]:
    """The label keys by which the pod selects nodes."""
    keys = {key for key, _ in constraints.selector}
    for term in constraints.terms or ():
        keys.update(requirement.key for requirement in term if not requirement.field)
    return keys


def by_name(constraints: SchedulingConstraints) -> bool:
    """Whether the pod selects nodes one by one: by their names, or by the label that repeats the name."""
    if any(key == HOSTNAME for key, _ in constraints.selector):
        return True
    every = (requirement for term in constraints.terms or () for requirement in term)
    return any(requirement.field or requirement.key == HOSTNAME for requirement in every)
