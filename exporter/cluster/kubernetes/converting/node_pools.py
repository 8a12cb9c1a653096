"""Karpenter's NodePools: whether one of them makes nodes with GPUs."""

import re
from sys import intern

import msgspec

from exporter.api_objects.wire import ObjectMeta, Quantities
from exporter.cluster.kubernetes.objects import quantity
from exporter.cluster.kubernetes.objects.wire import WireRequirement, WireTaint
from exporter.gpu_names import GpuResources

_GPU_KEY = re.compile(r"/(?:instance|sku)-gpu-|/gpu-count$", re.ASCII)
"""Labels of Karpenter's providers that describe an instance's GPUs."""
_GPU_FAMILIES = {
    "karpenter.k8s.aws/instance-category": re.compile(r"[gp]", re.ASCII),
    "karpenter.k8s.aws/instance-family": re.compile(r"[gp]\d.*", re.ASCII),
    "node.kubernetes.io/instance-type": re.compile(r"[gp]\d.*|Standard_N[CDV].*", re.ASCII),
}
"""Labels whose values name instances with GPUs at AWS and Azure."""


class NodePool(msgspec.Struct, frozen=True, gc=False):
    """A NodePool that can make nodes with GPUs."""

    name: str


class _NodeTemplateSpec(msgspec.Struct, gc=False):
    requirements: list[WireRequirement] | None = None
    taints: list[WireTaint] | None = None


class _NodeTemplate(msgspec.Struct, gc=False):
    spec: _NodeTemplateSpec | None = None


class _NodePoolSpec(msgspec.Struct, gc=False):
    template: _NodeTemplate | None = None
    limits: Quantities = None


class WireNodePool(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _NodePoolSpec | None = None


def node_pool(decoded: WireNodePool, gpus: GpuResources) -> NodePool | None:
    """Convert a NodePool; return None for one that makes no GPUs as far as it shows. Raises ValueError."""
    spec = decoded.spec or _NodePoolSpec()
    limits = [quantity.amount(value) for name, value in (spec.limits or {}).items() if name in gpus]
    template = (spec.template.spec if spec.template else None) or _NodeTemplateSpec()
    tainted = any(each.key in gpus for each in template.taints or ())
    asks = any(_asks_for_gpus(each) for each in template.requirements or ())
    if any(limit == 0 for limit in limits) or not (limits or tainted or asks):
        return None
    return NodePool(intern(decoded.metadata.name))


def _asks_for_gpus(requirement: WireRequirement) -> bool:
    values = requirement.values or []
    if _GPU_KEY.search(requirement.key):
        return requirement.operator in ("Exists", "Gt") or (requirement.operator == "In" and set(values) != {"0"})
    family = _GPU_FAMILIES.get(requirement.key)
    return family is not None and requirement.operator == "In" and any(map(family.fullmatch, values))
