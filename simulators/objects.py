"""Pods, nodes, namespaces and Jobs as an API server would return them, for the demonstration and for tests.

`pod` gives one that has just been created; `gated`, `unschedulable`, `bound` and `running` say what became of it.
Each returns a new object.
"""

import copy
import hashlib
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
Pairs = Mapping[str, str]

_NODE_CPU = "128"
_NODE_MEMORY = "2113452448Ki"
_IMAGE = "registry.example/ml/train:2.9"
_GPU_TAINT_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def stamp(at: float) -> str:
    """A time as the API server writes it, from seconds since the epoch."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def uid_of(*parts: str) -> str:
    """A uid that is the same each time for the same thing."""
    return str(uuid.UUID(bytes=hashlib.sha256("/".join(parts).encode()).digest()[:16], version=4))


def namespace(name: str, labels: Pairs | None = None, created: float = 0.0) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": uid_of("namespace", name),
            "creationTimestamp": stamp(created),
            "labels": {"kubernetes.io/metadata.name": name, **(labels or {})},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def job(name: str, space: str, created: float = 0.0) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": space,
            "uid": uid_of("job", space, name),
            "creationTimestamp": stamp(created),
        },
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 6},
        "status": {"active": 1, "startTime": stamp(created)},
    }


def owner(kind: str, name: str, space: str) -> Object:
    """A reference to the controller of a pod."""
    versions = {"Job": "batch/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1"}
    return {
        "apiVersion": versions.get(kind, "example.org/v1"),
        "kind": kind,
        "name": name,
        "uid": uid_of(kind.lower(), space, name),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod(
    name: str,
    space: str = "default",
    requests: Mapping[str, int | str] | None = None,
    owned_by: Object | None = None,
    created: float = 0.0,
    labels: Pairs | None = None,
    annotations: Pairs | None = None,
) -> Object:
    """A pod that no scheduler has looked at yet; it asks for one GPU unless `requests` says otherwise."""
    asked = {"nvidia.com/gpu": "1"} if requests is None else {key: str(value) for key, value in requests.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": space,
            "uid": uid_of("pod", space, name),
            "creationTimestamp": stamp(created),
            "labels": {"app.kubernetes.io/name": name, **(labels or {})},
            "annotations": dict(annotations or {}),
            **({"ownerReferences": [owned_by]} if owned_by else {}),
        },
        "spec": {
            "containers": [container("main", asked)],
            "restartPolicy": "Never" if owned_by and owned_by["kind"] == "Job" else "Always",
            "schedulerName": "default-scheduler",
            "priority": 0,
            "tolerations": [dict(_GPU_TAINT_TOLERATION)],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def container(name: str, asked: Mapping[str, str]) -> Object:
    """A container with these requests, and limits as the API server demands them of extended resources."""
    return {
        "name": name,
        "image": _IMAGE,
        "resources": {"limits": dict(asked), "requests": {"cpu": "8", "memory": "64Gi", **asked}},
    }


def gated(given: Object, *gates: str) -> Object:
    """Held back by scheduling gates, with the condition that the API server writes at creation."""
    changed = copy.deepcopy(given)
    changed["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    text = "Scheduling is blocked due to non-empty scheduling gates"
    return _scheduled(changed, "False", None, reason="SchedulingGated", message=text)


def unschedulable(given: Object, message: str, at: float = 0.0) -> Object:
    """Tried by the scheduler in vain."""
    return _scheduled(given, "False", at, reason="Unschedulable", message=message)


def bound(given: Object, node: str, at: float = 0.0) -> Object:
    """Given to a node, where its containers do not run yet."""
    changed = _scheduled(given, "True", at)
    changed["spec"]["nodeName"] = node
    changed["status"]["startTime"] = stamp(at)
    return changed


def running(given: Object, node: str, at: float = 0.0) -> Object:
    changed = bound(given, node, at)
    changed["status"]["phase"] = "Running"
    for kind in ("Initialized", "Ready", "ContainersReady"):
        changed["status"]["conditions"].append({"type": kind, "status": "True", "lastTransitionTime": stamp(at)})
    return changed


def _scheduled(given: Object, status: str, at: float | None, **more: str) -> Object:
    changed = copy.deepcopy(given)
    conditions = [each for each in changed["status"].get("conditions", ()) if each["type"] != "PodScheduled"]
    when = None if at is None else stamp(at)
    conditions.append({"type": "PodScheduled", "status": status, "lastTransitionTime": when, **more})
    changed["status"]["conditions"] = conditions
    return changed


def gpu_labels(product: str, count: int, sharing: str = "none", replicas: int = 1, mig: str = "single") -> Object:
    """The labels that GPU feature discovery gives a node."""
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": sharing,
        "nvidia.com/mig.strategy": mig,
    }


def node(
    name: str,
    gpus: Mapping[str, int] | None = None,
    labels: Pairs | None = None,
    taints: list[Object] | None = None,
    created: float = 0.0,
) -> Object:
    """A ready node with these GPU resources; `cordoned` and `not_ready` say otherwise."""
    there = {"cpu": _NODE_CPU, "memory": _NODE_MEMORY, "pods": "110", "ephemeral-storage": "1844284980Ki"}
    there |= {resource: str(count) for resource, count in (gpus or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid_of("node", name),
            "creationTimestamp": stamp(created),
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", **(labels or {})},
        },
        "spec": {"providerID": f"example:///{name}", **({"taints": taints} if taints else {})},
        "status": {
            "capacity": dict(there),
            "allocatable": dict(there),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "lastTransitionTime": stamp(created),
                }
            ],
        },
    }


def cordoned(given: Object) -> Object:
    changed = copy.deepcopy(given)
    changed["spec"]["unschedulable"] = True
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    changed["spec"]["taints"] = [*changed["spec"].get("taints", ()), taint]
    return changed


def not_ready(given: Object) -> Object:
    changed = copy.deepcopy(given)
    changed["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    return changed
