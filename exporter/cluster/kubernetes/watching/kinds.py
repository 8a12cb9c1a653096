"""The kinds of objects that are watched: how each is decoded, and where it is requested by the table of permissions."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from exporter.api_objects import device_claims
from exporter.cluster.config import Keys
from exporter.cluster.kubernetes.converting import (
    autoscaler_status,
    controllers,
    conversion,
    devices,
    events,
    node_pools,
)
from exporter.cluster.kubernetes.objects import wire
from exporter.cluster.kubernetes.watching.decode import ObjectCodec
from exporter.cluster.kubernetes.watching.permissions import WATCHED, Permission
from exporter.gpu_names import GpuResources

_UNSUCCESSFUL = {"fieldSelector": "status.phase!=Succeeded"}
"""Most pods of a batch cluster have succeeded. Failed ones are counted by why they failed."""
_NO_KEYS: Keys = MappingProxyType({})


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


@dataclass(frozen=True, slots=True)
class _Form:
    """What the objects of a kind are, wherever they are requested."""

    object: str
    codec: ObjectCodec[Any]
    query: dict[str, str] = field(default_factory=dict)
    namespaced: bool = True


def object_kinds(gpus: GpuResources, namespace_keys: Keys = _NO_KEYS) -> tuple[ObjectKind, ...]:
    """All kinds that the table of permissions names, the needed ones first.

    `namespace_keys` are those of the labels that say who pays for a namespace.
    """
    forms = {**_of_the_core(gpus, namespace_keys), **_of_devices(gpus), **_of_controllers(gpus)}
    return tuple(_kind(part, name, forms[name]) for part in WATCHED for name in part.resources)


def _kind(part: Permission, name: str, form: _Form) -> ObjectKind:
    query = form.query | part.query()
    namespaced = form.namespaced and not part.namespace
    return ObjectKind(name, form.object, part.paths(name), form.codec, query, not part.needed, namespaced)


def _of_the_core(gpus: GpuResources, keys: Keys) -> dict[str, _Form]:
    pods = ObjectCodec(wire.WirePod, lambda pod: conversion.pod(pod, gpus))
    namespaces = ObjectCodec(wire.WireNamespace, lambda namespace: conversion.namespace(namespace, keys))
    nodes = ObjectCodec(wire.WireNode, lambda node: conversion.node(node, gpus))
    quotas = ObjectCodec(wire.WireQuota, lambda decoded: conversion.quota(decoded, gpus))
    status = ObjectCodec(autoscaler_status.WireConfigMap, autoscaler_status.autoscaler_status)
    return {
        "pods": _Form("Pod", pods, _UNSUCCESSFUL),
        "nodes": _Form("Node", nodes, namespaced=False),
        "namespaces": _Form("Namespace", namespaces, namespaced=False),
        "events": _Form("Event", ObjectCodec(events.WireEvent, events.event), events.SELECTOR),
        "resourcequotas": _Form("ResourceQuota", quotas),
        "configmaps": _Form("ConfigMap", status),
    }


def _of_devices(gpus: GpuResources) -> dict[str, _Form]:
    claims = ObjectCodec(device_claims.WireResourceClaim, devices.resource_claim)
    templates = ObjectCodec(devices.WireClaimTemplate, devices.claim_template)
    slices = ObjectCodec(device_claims.WireResourceSlice, devices.resource_slice)
    classes = ObjectCodec(devices.WireDeviceClass, lambda decoded: devices.device_class(decoded, gpus))
    return {
        "resourceclaims": _Form("ResourceClaim", claims),
        "resourceclaimtemplates": _Form("ResourceClaimTemplate", templates),
        "resourceslices": _Form("ResourceSlice", slices, namespaced=False),
        "deviceclasses": _Form("DeviceClass", classes, namespaced=False),
    }


def _of_controllers(gpus: GpuResources) -> dict[str, _Form]:
    def replicas(kind: str) -> ObjectCodec[Any]:
        return ObjectCodec(controllers.WireController, lambda decoded: controllers.of_replicas(decoded, kind, gpus))

    daemons = ObjectCodec(controllers.WireController, lambda decoded: controllers.of_daemonset(decoded, gpus))
    jobs = ObjectCodec(controllers.WireController, lambda decoded: controllers.of_job(decoded, gpus))
    workloads = ObjectCodec(controllers.WireWorkload, lambda decoded: controllers.of_workload(decoded, gpus))
    pools = ObjectCodec(node_pools.WireNodePool, lambda decoded: node_pools.node_pool(decoded, gpus))
    return {
        "replicasets": _Form("ReplicaSet", replicas("ReplicaSet")),
        "statefulsets": _Form("StatefulSet", replicas("StatefulSet")),
        "daemonsets": _Form("DaemonSet", daemons),
        "jobs": _Form("Job", jobs),
        "workloads": _Form("Workload", workloads),
        "nodepools": _Form("NodePool", pools, namespaced=False),
    }
