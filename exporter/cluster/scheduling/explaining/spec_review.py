"""Compares a pod's spec with the mistakes that are often made with GPUs. No I/O, no state.

A mistake that depends on the nodes is only found where they are known.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exporter.cluster.kubernetes.nodes.node_description import MODEL_LABELS
from exporter.cluster.kubernetes.objects import quantity
from exporter.cluster.kubernetes.objects.records import Node, Pod, SelectorRequirement
from exporter.cluster.kubernetes.pods.pod_detail import DetailedContainer, PodDetail
from exporter.cluster.scheduling.nodes.free_capacity import NodeGroup
from exporter.cluster.scheduling.nodes.node_fit import Fit, fit
from exporter.cluster.scheduling.nodes.node_selection import (
    ANY_MODEL,
    demanded_model,
    keys_of,
    selected,
    taint_text,
    tolerated,
    untolerated,
)
from exporter.gpu_names import WHOLE_GPU, GpuResources, share_of

_MIG = "nvidia.com/mig-"
_SHARED_LIMIT = "maximum request size for shared resources"
"""How NVIDIA's device plugin rejects more than one replica of a shared GPU."""
_MEANS_GPUS = re.compile(r"gpu|nvidia|mig", re.IGNORECASE)
_MISSPELLED = re.compile(r"nvidia\.com/gpus?", re.IGNORECASE | re.ASCII)
"""Names that are wrong on every cluster, unless they are the right one."""
_ALIKE = 0.8
"""From which likeness on, by difflib's ratio, a name is meant to be another."""
_ALTERNATIVES = 3
"""How many sets of taints are named, where the nodes differ."""
_NO_DEVICES = frozenset({"", "none", "void"})
_COMPUTE = ("compute", "all")
"""Driver capabilities with which a program can compute; without them it can only monitor."""


@dataclass(frozen=True, slots=True)
class PodReview:
    """A pod and what its spec is compared with."""

    detail: PodDetail
    gpus: GpuResources
    pod: Pod | None = None
    """None for a pod that requests no GPU."""
    nodes: Sequence[Node] | None = None
    """The nodes with GPUs; None while they are not known."""
    groups: tuple[NodeGroup, ...] = ()
    """The same nodes, as the pod is compared with them."""
    messages: tuple[str, ...] = ()
    """What a kubelet wrote about the pod."""
    gpu_pools: bool = False
    """Whether an autoscaler can make nodes with GPUs, of whatever model."""


class Mistake(NamedTuple):
    """One row of the review."""

    name: str
    check: Callable[[PodReview], str]
    """Returns what is wrong; nothing where the spec is right."""
    message: str
    """With `{found}` for what the check returns."""
    command: str
    """A command that shows it, with `{namespace}` and `{pod}`."""


class SpecFinding(NamedTuple):
    """A mistake in a pod's spec."""

    mistake: str
    text: str
    command: str


def review(given: PodReview) -> tuple[SpecFinding, ...]:
    """Find the mistakes in a pod's spec, in the order of the table."""
    meta = given.detail.metadata
    names = {"namespace": shlex.quote(meta.namespace or "default"), "pod": shlex.quote(meta.name)}
    return tuple(
        SpecFinding(row.name, row.message.format(found=found), row.command.format_map(names))
        for row in MISTAKES
        if (found := row.check(given))
    )


def _requests_only(given: PodReview) -> str:
    def names(container: DetailedContainer) -> Iterable[str]:
        resources = container.resources
        limits = (resources and resources.limits) or {}
        requests = (resources and resources.requests) or {}
        return (name for name in requests if name in given.gpus and name not in limits)

    found = [f"{name} of container {each.name}" for each in given.detail.containers() for name in names(each)]
    return ", ".join(found)


def _missing_toleration(given: PodReview) -> str:
    pod = given.pod
    if pod is None or pod.node or fit(pod, given.groups) is not Fit.TAINTED:
        return ""
    allowed = (group for group in given.groups if selected(pod.constraints, group.name, group.labels))
    missing = {" and ".join(map(taint_text, untolerated(pod.constraints, group.taints))) for group in allowed}
    return " or ".join(sorted(missing - {""})[:_ALTERNATIVES])


def _absent_product(given: PodReview) -> str:
    """What the pod demands of labels that name a GPU model, where no node has it in any alternative."""
    if given.pod is None or given.pod.node or given.nodes is None or given.gpu_pools:
        return ""
    carried = {pair for node in given.nodes for pair in _pairs(node) if pair[0] in MODEL_LABELS}
    constraints = given.pod.constraints
    absent = [pair for pair in constraints.selector if pair[0] in MODEL_LABELS and pair not in carried]
    if not absent and constraints.terms:
        alternatives = [_absent_in(term, carried) for term in constraints.terms]
        absent = [pair for each in alternatives for pair in each] if all(alternatives) else []
    if not absent:
        return ""
    present = sorted({value for key, value in carried if key in {key for key, _ in absent}})
    return f"{', '.join(f'{key}={value}' for key, value in absent)} (there is: {', '.join(present) or 'none'})"


def _absent_in(term: Iterable[SelectorRequirement], carried: set[tuple[str, str]]) -> list[tuple[str, str]]:
    for each in term:
        asks = each.operator == "In" and each.key in MODEL_LABELS
        if asks and not any((each.key, value) in carried for value in each.values):
            return [(each.key, value) for value in each.values]
    return []


def _pairs(node: Node) -> Iterable[tuple[str, str]]:
    return zip(node.labels[::2], node.labels[1::2], strict=True)


def _absent_mig(given: PodReview) -> str:
    if given.pod is None or given.pod.node or given.nodes is None:
        return ""
    absent = [name for name, _ in given.pod.requests if name.startswith(_MIG) and not _offered(name, given)]
    return f"{', '.join(absent)} (there is: {', '.join(_names(given)) or 'none'})" if absent else ""


def _names(given: PodReview) -> list[str]:
    """The resources that nodes offer."""
    return sorted({name for group in given.groups for each in group.devices for name, count in each.capacity if count})


def _offered(name: str, given: PodReview) -> bool:
    """Whether a node offers the resource, or should."""
    devices = [each for group in given.groups for each in group.devices]
    return any(dict(each.capacity).get(name) or each.should_offer(name, 1) for each in devices)


def _mistyped(given: PodReview) -> str:
    names = dict.fromkeys(name for each in given.detail.containers() for name in each.amounts())
    meant = ((name, _meant(name, given)) for name in names)
    return ", ".join(f"{name} (probably meant: {other})" for name, other in meant if other)


def _meant(name: str, given: PodReview) -> str:
    """The resource that a name is meant to be; nothing for one that is right, or like no other."""
    configured = name in given.gpus.further
    right = name in (WHOLE_GPU, f"{WHOLE_GPU}.shared") or name.startswith(_MIG) or share_of(name) is not None
    if configured or right or not _MEANS_GPUS.search(name) or _offered(name, given):
        return ""
    if given.nodes is None and not _MISSPELLED.fullmatch(name):
        return ""
    alike = difflib.get_close_matches(name, [*_names(given), WHOLE_GPU], 1, _ALIKE)
    return WHOLE_GPU if _MISSPELLED.fullmatch(name) else next(iter(alike), "")


def _too_many_replicas(given: PodReview) -> str:
    """Devices of a shared GPU that one container asks for, where only one is given: always with MPS."""
    if given.pod is None:
        return ""
    rejected = next((each for each in given.messages if _SHARED_LIMIT in each), "")
    if rejected:
        return rejected
    asked = {name: max(count, 0) for name, count in _most_of_a_container(given)}
    return ", ".join(f"{count} {name}" for name, count in asked.items() if count > 1 and _by_mps(name, given))


def _most_of_a_container(given: PodReview) -> Iterable[tuple[str, int]]:
    found: dict[str, int] = {}
    for each in given.detail.containers():
        for name, value in each.amounts().items():
            if name in given.gpus:
                found[name] = max(found.get(name, 0), quantity.devices(value))
    return found.items()


def _by_mps(name: str, given: PodReview) -> bool:
    offering = [node for node in _selected(given) if dict(node.capacity).get(name)]
    return bool(offering) and all(node.description.sharing == "mps" for node in offering)


def _selected(given: PodReview) -> list[Node]:
    """The nodes with GPUs that selector and affinity allow."""
    if given.pod is None:
        return []
    constraints = given.pod.constraints
    return [node for node in given.nodes or () if selected(constraints, node.name, dict(_pairs(node)))]


def _devices_without_request(given: PodReview) -> str:
    if given.pod is not None and not any(name in given.gpus for name, _ in given.pod.requests):
        return ""  # what it asks for is no device resource: a claim, or a part of a GPU
    return ", ".join(found for each in given.detail.containers() if (found := _sees_all(each, given)))


def _sees_all(container: DetailedContainer, given: PodReview) -> str:
    variables = {each.name: each.value or "" for each in container.env or ()}
    devices = variables.get("NVIDIA_VISIBLE_DEVICES", "")
    capabilities = variables.get("NVIDIA_DRIVER_CAPABILITIES", "all").split(",")
    claims = container.resources.claims if container.resources is not None else None
    asks = claims or any(name in given.gpus or share_of(name) for name in container.amounts())
    if asks or devices in _NO_DEVICES or not any(each in _COMPUTE for each in capabilities):
        return ""
    return f"NVIDIA_VISIBLE_DEVICES={devices} in container {container.name}"


def _several_models(given: PodReview) -> str:
    pod = given.pod
    if pod is None or pod.node or demanded_model(pod.constraints) != ANY_MODEL:
        return ""
    if any(key.startswith("nvidia.com/") or key in MODEL_LABELS for key in keys_of(pod.constraints)):
        return ""
    whole = [name for name, _ in pod.requests if not name.startswith(_MIG)]
    models = {
        node.description.model
        for node in _selected(given)
        if tolerated(pod.constraints, node.taints) and any(dict(node.capacity).get(name) for name in whole)
    }
    known = sorted(models - {""})
    return ", ".join(known) if len(known) > 1 else ""


_RESOURCES = "kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.containers[*].resources}}'"
_OFFERED = "kubectl get nodes -o custom-columns=NAME:.metadata.name,RESOURCES:.status.allocatable"
_MODELS = "kubectl get nodes -L nvidia.com/gpu.product"

MISTAKES = (
    Mistake(
        "gpu_under_requests_only",
        _requests_only,
        "Devices must be under limits, where their request may be left out: {found}.",
        _RESOURCES,
    ),
    Mistake(
        "missing_toleration",
        _missing_toleration,
        "The pod tolerates the taints of no node that has its GPUs; missing is a toleration for {found}.",
        "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",
    ),
    Mistake(
        "product_of_no_node",
        _absent_product,
        "The pod selects a GPU model that no node is labeled with: {found}.",
        _MODELS,
    ),
    Mistake(
        "mig_not_offered",
        _absent_mig,
        "No node is partitioned so that it offers {found}.",
        "kubectl get nodes -L nvidia.com/mig.config,nvidia.com/mig.config.state,nvidia.com/mig.strategy",
    ),
    Mistake("mistyped_resource", _mistyped, "No node offers a resource of this name: {found}.", _OFFERED),
    Mistake(
        "too_many_replicas",
        _too_many_replicas,
        "A container gets one replica of a shared GPU, however many it asks for, or is rejected: {found}.",
        "kubectl get nodes -L nvidia.com/gpu.sharing-strategy,nvidia.com/gpu.replicas",
    ),
    Mistake(
        "devices_without_request",
        _devices_without_request,
        "A container sees GPUs that it does not request, which may be allocated to others: {found}.",
        "kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.containers[*].env}}'",
    ),
    Mistake(
        "several_models",
        _several_models,
        "The pod selects no GPU model and may get any of these: {found}.",
        _MODELS,
    ),
)
