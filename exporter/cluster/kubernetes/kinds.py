"""The kinds of objects that are watched: where they are requested and how they are decoded.

Pods, nodes and namespaces are needed. Every other kind is optional: each adds reasons or numbers of its own, needs a
permission of its own, and is left out while that is missing or the API server does not serve it.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from exporter.cluster.config import Keys
from exporter.cluster.kubernetes import autoscaler_status, controllers, conversion, devices, events, node_pools, wire
from exporter.cluster.kubernetes.decode import ObjectCodec
from exporter.gpu_names import GpuResources

_UNSUCCESSFUL = {"fieldSelector": "status.phase!=Succeeded"}
"""Most pods of a batch cluster have succeeded. Failed ones are counted by why they failed."""
_DRA = tuple(f"/apis/resource.k8s.io/{version}/" for version in ("v1", "v1beta2", "v1beta1"))
_KARPENTER = ("/apis/karpenter.sh/v1/", "/apis/karpenter.sh/v1beta1/")
_NO_KEYS: Keys = MappingProxyType({})
_KUEUE = tuple(f"/apis/kueue.x-k8s.io/{version}/" for version in ("v1beta2", "v1beta1"))


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind of object that is watched, and how to request and decode it."""

    name: str
    """The name of the resource in the API, in the plural."""
    object: str
    """What an object of this kind names its kind."""
    paths: tuple[str, ...]
    """Of each version of the API that is understood, the preferred one first."""
    codec: ObjectCodec[Any]
    query: dict[str, str] = field(default_factory=dict)
    """Parameters of every list and watch."""
    optional: bool = False
    namespaced: bool = True
    """Whether its objects are in namespaces, so that those of one can be listed alone."""

    def paths_in(self, namespace: str) -> tuple[str, ...]:
        """Where the objects of one namespace are requested."""
        split = (path.rpartition("/") for path in self.paths)
        return tuple(f"{group}/namespaces/{namespace}/{name}" for group, _, name in split)


def object_kinds(gpus: GpuResources, namespace_keys: Keys = _NO_KEYS) -> tuple[ObjectKind, ...]:
    """All kinds, the needed ones first. `namespace_keys` are those of the labels that say who pays for a namespace."""
    pools = ObjectCodec(node_pools.WireNodePool, lambda decoded: node_pools.node_pool(decoded, gpus))
    return (
        *_needed(gpus, namespace_keys),
        *_of_devices(gpus),
        *_of_controllers(gpus),
        _optional("nodepools", "NodePool", _KARPENTER, pools, namespaced=False),
        _optional(
            "resourcequotas",
            "ResourceQuota",
            ("/api/v1/",),
            ObjectCodec(wire.WireQuota, lambda decoded: conversion.quota(decoded, gpus)),
        ),
        _events(),
        _autoscaler(),
    )


def _needed(gpus: GpuResources, keys: Keys) -> tuple[ObjectKind, ...]:
    pods = ObjectCodec(wire.WirePod, lambda pod: conversion.pod(pod, gpus))
    namespaces = ObjectCodec(wire.WireNamespace, lambda namespace: conversion.namespace(namespace, keys))
    nodes = ObjectCodec(wire.WireNode, lambda node: conversion.node(node, gpus))
    return (
        ObjectKind("pods", "Pod", ("/api/v1/pods",), pods, _UNSUCCESSFUL),
        ObjectKind("nodes", "Node", ("/api/v1/nodes",), nodes, namespaced=False),
        ObjectKind("namespaces", "Namespace", ("/api/v1/namespaces",), namespaces, namespaced=False),
    )


def _of_devices(gpus: GpuResources) -> tuple[ObjectKind, ...]:
    return (
        _optional(
            "resourceclaims", "ResourceClaim", _DRA, ObjectCodec(devices.WireResourceClaim, devices.resource_claim)
        ),
        _optional(
            "resourceclaimtemplates",
            "ResourceClaimTemplate",
            _DRA,
            ObjectCodec(devices.WireClaimTemplate, devices.claim_template),
        ),
        _optional(
            "resourceslices",
            "ResourceSlice",
            _DRA,
            ObjectCodec(devices.WireResourceSlice, devices.resource_slice),
            namespaced=False,
        ),
        _optional(
            "deviceclasses",
            "DeviceClass",
            _DRA,
            ObjectCodec(devices.WireDeviceClass, lambda decoded: devices.device_class(decoded, gpus)),
            namespaced=False,
        ),
    )


def _of_controllers(gpus: GpuResources) -> tuple[ObjectKind, ...]:
    def replicas(kind: str) -> ObjectCodec[Any]:
        return ObjectCodec(controllers.WireController, lambda decoded: controllers.of_replicas(decoded, kind, gpus))

    apps = ("/apis/apps/v1/",)
    return (
        _optional("replicasets", "ReplicaSet", apps, replicas("ReplicaSet")),
        _optional("statefulsets", "StatefulSet", apps, replicas("StatefulSet")),
        _optional(
            "daemonsets",
            "DaemonSet",
            apps,
            ObjectCodec(controllers.WireController, lambda decoded: controllers.of_daemonset(decoded, gpus)),
        ),
        _optional(
            "jobs",
            "Job",
            ("/apis/batch/v1/",),
            ObjectCodec(controllers.WireController, lambda decoded: controllers.of_job(decoded, gpus)),
        ),
        _optional(
            "workloads",
            "Workload",
            _KUEUE,
            ObjectCodec(controllers.WireWorkload, lambda decoded: controllers.of_workload(decoded, gpus)),
        ),
    )


def _events() -> ObjectKind:
    codec = ObjectCodec(events.WireEvent, events.event)
    return ObjectKind("events", "Event", ("/api/v1/events",), codec, events.SELECTOR, optional=True)


def _autoscaler() -> ObjectKind:
    """One ConfigMap of one namespace: no other one is asked for, and none needs to be allowed."""
    path = f"/api/v1/namespaces/{autoscaler_status.NAMESPACE}/configmaps"
    query = {"fieldSelector": f"metadata.name={autoscaler_status.NAME}"}
    codec = ObjectCodec(autoscaler_status.WireConfigMap, autoscaler_status.autoscaler_status)
    return ObjectKind("configmaps", "ConfigMap", (path,), codec, query, optional=True, namespaced=False)


def _optional(
    name: str, object_: str, groups: tuple[str, ...], codec: ObjectCodec[Any], *, namespaced: bool = True
) -> ObjectKind:
    paths = tuple(group + name for group in groups)
    return ObjectKind(name, object_, paths, codec, optional=True, namespaced=namespaced)
