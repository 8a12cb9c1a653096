"""A situation: what is made on a real control plane, and the reason that each pod has then.

Nodes are made through the API as a kubelet would report them. Pods are bound by the scheduler; `holding` pods are put
on a node and run, because there is no kubelet.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from simulators import objects

GPU = "nvidia.com/gpu"
PRODUCT = "NVIDIA-H100-80GB-HBM3"
UNTRIED = {"gated", "queued", "gang", "not_tried"}
"""Reasons of pods of which the scheduler may write no condition."""
WITHOUT_FINALIZERS = {"metadata": {"finalizers": None}}
MADE_BY_OTHERS = (("apis/apps/v1", "replicasets"), ("api/v1", "pods"), ("apis/resource.k8s.io/v1", "resourceclaims"))
HOLDS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(frozen=True)
class Situation:
    """One situation. Its name is that of its namespace."""

    name: str
    expected: Mapping[str, str]
    """The reason of each pending pod."""
    objects: tuple[dict, ...]
    """Made in this order. Those of namespaces get the namespace of the situation."""
    steps: tuple[Callable, ...] = ()
    """Each is called with the control plane and the namespace, once the objects are made."""
    controlled: Mapping[str, int] = field(default_factory=dict)
    """How many pods that controllers have made, by reason."""
    blocked: Mapping[str, int] = field(default_factory=dict)
    """How many controllers have no pods, by reason."""
    unconditional: tuple[str, ...] = ()
    """Pods of which the scheduler writes no condition."""

    def reasons(self):
        """How many pods have each reason."""
        return Counter(self.expected.values()) + Counter(self.controlled)

    def tried(self):
        """The pods that the scheduler has to try before anything can be said of them."""
        without = {name for name, reason in self.expected.items() if reason in UNTRIED}
        return self.expected.keys() - without - set(self.unconditional)


def situation(name, expected, *made, **more):
    """A situation whose pods all have the same reason, `p` if it is one, or each its own."""
    reasons = {"p": expected} if isinstance(expected, str) else expected
    return Situation(name, reasons, made, **more)


def h100(name, gpus=8, *, labels=(), taints=None, resources=()):
    """A node with GPUs under the usual name, and with these other amounts of resources."""
    made = objects.node(
        name, {GPU: gpus} if gpus else {}, objects.gpu_labels(PRODUCT, gpus or 8) | dict(labels), taints
    )
    for where in ("capacity", "allocatable"):
        made["status"][where] |= {key: str(value) for key, value in dict(resources).items()}
    return made


def cpu(name, labels=()):
    """A node without GPUs."""
    return objects.node(name, {}, dict(labels))


def offering(node, resources):
    """The node with other allocatable amounts than its capacity."""
    changed = copy.deepcopy(node)
    changed["status"]["allocatable"] |= {key: str(value) for key, value in resources.items()}
    return changed


def pod(name="p", gpus=1, *, asks=(), cpu="8", memory="64Gi", **spec):
    """A pod; `asks` are further resources, and `spec` are fields of its specification."""
    devices = ({GPU: gpus} if gpus else {}) | dict(asks)
    made = objects.pod(name, requests=devices)
    made["spec"]["containers"][0]["resources"]["requests"] |= {"cpu": cpu, "memory": memory}
    made["spec"] |= spec
    made["spec"].pop("priority", None)
    made["spec"].setdefault("terminationGracePeriodSeconds", 0)
    del made["status"], made["metadata"]["uid"], made["metadata"]["creationTimestamp"]
    return made


def holding(name, node, gpus=8, *, asks=(), **more):
    """A pod that runs on a node."""
    made = pod(name, gpus, asks=asks, **{"cpu": "1", "memory": "1Gi", **more})
    made["spec"]["nodeName"] = node
    made["status"] = copy.deepcopy(HOLDS)
    return made


def without_toleration(made):
    changed = copy.deepcopy(made)
    changed["spec"]["tolerations"] = []
    return changed


def taint(key, value="", effect="NoSchedule"):
    return {"key": key, "value": value, "effect": effect}


def needs_node(*expressions):
    """The field `affinity` of a pod that requires these node labels."""
    terms = [{"matchExpressions": list(expressions)}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def label_in(key, *values):
    return {"key": key, "operator": "In", "values": list(values)}


def make(plane, given, namespace):
    """Make an object on the control plane. Returns the path of the object."""
    made = copy.deepcopy(given)
    if plane.namespaced(made):
        made["metadata"]["namespace"] = namespace
    path = plane.path_of(made)
    if made["kind"] == "Node":
        del made["metadata"]["uid"], made["metadata"]["creationTimestamp"]
    plane.create(path, made)
    where = f"{path}/{made['metadata']['name']}"
    if made["kind"] == "Node":  # admission adds the taint of a node that is not ready
        plane.patch(where, {"spec": {"taints": made["spec"].get("taints")}})
    return where


@contextmanager
def made(plane, given):
    """The situation on a control plane, once the scheduler has tried its pods; unmade at the end."""
    paths = []
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": given.name}})
    try:
        paths.extend(make(plane, each, given.name) for each in given.objects)
        for step in given.steps:
            step(plane, given.name)
        plane.until(lambda: given.tried() <= scheduled(plane, given.name).keys())
        yield
    finally:
        unmake(plane, paths, given.name)


def scheduled(plane, namespace):
    """The condition PodScheduled of each pod that has one."""
    return {
        pod["metadata"]["name"]: condition
        for pod in plane.items(f"/api/v1/namespaces/{namespace}/pods")
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "PodScheduled"
    }


def unmake(plane, paths, namespace):
    """Delete what a situation made, and what controllers and the scheduler have made of it."""
    force = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    for path in reversed(paths):
        plane.delete(path, force)
    for each in plane.items(f"/api/v1/namespaces/{namespace}/pods"):
        if each["metadata"].get("finalizers"):
            plane.patch(f"/api/v1/namespaces/{namespace}/pods/{each['metadata']['name']}", WITHOUT_FINALIZERS)
    for group, name in MADE_BY_OTHERS:
        plane.delete(f"/{group}/namespaces/{namespace}/{name}", force)
