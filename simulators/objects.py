"""Pods, nodes, namespaces and Jobs as an API server returns them, for the demo and for tests.

`pod` makes a pod that was just created; `gated`, `unschedulable`, `bound` and `running` return it in a later state.
`node` makes a ready node; `cordoned` and `not_ready` return it in that state. No function changes the object that it is
given.
"""

import copy
import hashlib
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

KubernetesObject = dict[str, Any]
StringPairs = Mapping[str, str]

_NODE_CPU = "128"
_NODE_MEMORY = "2113452448Ki"
_IMAGE = "registry.example/ml/train:2.9"
_GPU_TAINT_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def stamp(at: float) -> str:
    """Format a time, in seconds since the epoch, as the API server writes it."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def uid_of(*parts: str) -> str:
    """Make a uid that is the same each time for the same parts."""
    return str(uuid.UUID(bytes=hashlib.sha256("/".join(parts).encode()).digest()[:16], version=4))


def namespace(name: str, labels: StringPairs | None = None, created: float = 0.0) -> KubernetesObject:
    """Make a namespace."""
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


def job(name: str, in_namespace: str, created: float = 0.0) -> KubernetesObject:
    """Make a Job that runs one pod."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": in_namespace,
            "uid": uid_of("job", in_namespace, name),
            "creationTimestamp": stamp(created),
        },
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 6},
        "status": {"active": 1, "startTime": stamp(created)},
    }


def owner(kind: str, name: str, in_namespace: str) -> KubernetesObject:
    """Make an owner reference to the controller of a pod."""
    versions = {"Job": "batch/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1"}
    return {
        "apiVersion": versions.get(kind, "example.org/v1"),
        "kind": kind,
        "name": name,
        "uid": uid_of(kind.lower(), in_namespace, name),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod(
    name: str,
    in_namespace: str = "default",
    requests: Mapping[str, int | str] | None = None,
    owned_by: KubernetesObject | None = None,
    created: float = 0.0,
    labels: StringPairs | None = None,
    annotations: StringPairs | None = None,
) -> KubernetesObject:
    """Make a pod that no scheduler has tried yet. Without `requests` it requests one GPU."""
    devices = {"nvidia.com/gpu": "1"} if requests is None else {key: str(value) for key, value in requests.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": in_namespace,
            "uid": uid_of("pod", in_namespace, name),
            "creationTimestamp": stamp(created),
            "labels": {"app.kubernetes.io/name": name, **(labels or {})},
            "annotations": dict(annotations or {}),
            **({"ownerReferences": [owned_by]} if owned_by else {}),
        },
        "spec": {
            "containers": [container("main", devices)],
            "restartPolicy": "Never" if owned_by and owned_by["kind"] == "Job" else "Always",
            "schedulerName": "default-scheduler",
            "priority": 0,
            "tolerations": [dict(_GPU_TAINT_TOLERATION)],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def container(name: str, devices: Mapping[str, str]) -> KubernetesObject:
    """Make a container that requests these devices; the API server requires equal limits for them."""
    return {
        "name": name,
        "image": _IMAGE,
        "resources": {"limits": dict(devices), "requests": {"cpu": "8", "memory": "64Gi", **devices}},
    }


def gated(given: KubernetesObject, *gates: str) -> KubernetesObject:
    """Return the pod with scheduling gates, and with the condition that the API server writes at creation."""
    changed = copy.deepcopy(given)
    changed["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    text = "Scheduling is blocked due to non-empty scheduling gates"
    return _with_scheduled_condition(changed, "False", None, reason="SchedulingGated", message=text)


def unschedulable(given: KubernetesObject, message: str, at: float = 0.0) -> KubernetesObject:
    """Return the pod as after the scheduler found no node for it, with the scheduler's message."""
    return _with_scheduled_condition(given, "False", at, reason="Unschedulable", message=message)


def bound(given: KubernetesObject, node: str, at: float = 0.0) -> KubernetesObject:
    """Return the pod bound to a node, where its containers do not run yet."""
    changed = _with_scheduled_condition(given, "True", at)
    changed["spec"]["nodeName"] = node
    changed["status"]["startTime"] = stamp(at)
    return changed


def running(given: KubernetesObject, node: str, at: float = 0.0) -> KubernetesObject:
    """Return the pod running on a node."""
    changed = bound(given, node, at)
    changed["status"]["phase"] = "Running"
    for condition in ("Initialized", "Ready", "ContainersReady"):
        changed["status"]["conditions"].append({"type": condition, "status": "True", "lastTransitionTime": stamp(at)})
    return changed


def _with_scheduled_condition(
    given: KubernetesObject, status: str, at: float | None, **fields: str
) -> KubernetesObject:
    changed = copy.deepcopy(given)
    conditions = [each for each in changed["status"].get("conditions", ()) if each["type"] != "PodScheduled"]
    time = None if at is None else stamp(at)
    conditions.append({"type": "PodScheduled", "status": status, "lastTransitionTime": time, **fields})
    changed["status"]["conditions"] = conditions
    return changed


def gpu_labels(
    product: str, count: int, sharing: str = "none", replicas: int = 1, mig: str = "single"
) -> KubernetesObject:
    """Make some of the labels that GPU feature discovery sets on a node."""
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
    labels: StringPairs | None = None,
    taints: list[KubernetesObject] | None = None,
    created: float = 0.0,
) -> KubernetesObject:
    """Make a ready node with these GPU resources."""
    resources = {"cpu": _NODE_CPU, "memory": _NODE_MEMORY, "pods": "110", "ephemeral-storage": "1844284980Ki"}
    resources |= {resource: str(count) for resource, count in (gpus or {}).items()}
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
            "capacity": dict(resources),
            "allocatable": dict(resources),
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


def cordoned(given: KubernetesObject) -> KubernetesObject:
    """Return the node cordoned, with the taint that Kubernetes adds then."""
    changed = copy.deepcopy(given)
    changed["spec"]["unschedulable"] = True
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    changed["spec"]["taints"] = [*changed["spec"].get("taints", ()), taint]
    return changed


def not_ready(given: KubernetesObject) -> KubernetesObject:
    """Return the node as after its kubelet stopped reporting."""
    changed = copy.deepcopy(given)
    changed["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    return changed
