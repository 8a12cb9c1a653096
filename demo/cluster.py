"""The demo's simulated cluster: three GPU nodes, the pods that their GPUs are allocated to, and pending pods.

The GPUs of a node come from a built-in scenario (a JSON file that describes GPUs and how they change); the rest is made
here, as Kubernetes objects for the simulated API server. No state.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from exporter.node.simulation.document import ScenarioAllocation
from exporter.node.simulation.scenario import Scenario, load
from simulators import objects
from simulators.kubelet import KubeletAllocation
from simulators.objects import KubernetesObject

HOUR = 3600.0
OLDEST_PENDING_AGE_SECONDS = 42 * 60.0
"""How long before the start of the demo the oldest pending pods were created."""
TOO_FEW = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available."
NO_MATCH = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."

OWNERS = {  # of each pod: kind and name of its controller
    "llama-pretrain-worker-0": ("PyTorchJob", "llama-pretrain"),
    "chat-serving-7c9d6b5f48-m8qzl": ("ReplicaSet", "chat-serving-7c9d6b5f48"),
    "ablation-7-xk2vp": ("Job", "ablation-7"),
    "embedder-6f7d9c5b7d-9kx2c": ("ReplicaSet", "embedder-6f7d9c5b7d"),
    "reranker-75c8bb6d59-ztw4l": ("ReplicaSet", "reranker-75c8bb6d59"),
    "jupyter-dana-0": ("StatefulSet", "jupyter-dana"),
    "jupyter-omar-0": ("StatefulSet", "jupyter-omar"),
    "finetune-mistral-2": ("PyTorchJob", "finetune-mistral"),
    "notebook-lena-0": ("StatefulSet", "notebook-lena"),
    "notebook-timo-0": ("StatefulSet", "notebook-timo"),
    "ocr-small-5b8f6d7c9-qv7rn": ("ReplicaSet", "ocr-small-5b8f6d7c9"),
    "batch-thumbnails-29x7k": ("Job", "batch-thumbnails"),
}


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """One node: its name, the scenario of its GPUs, and the resources and labels that the scheduler sees."""

    name: str
    scenario: str
    resources: dict[str, int]
    product: str
    count: int
    sharing: str = "none"
    replicas: int = 1
    mig: str = "single"

    def write_scenario(self, folder: Path, epoch: float) -> Path:
        """Write the node's built-in scenario with a fixed beginning, so that the present continues the history.

        `epoch` is that beginning, in seconds since the epoch. Returns the file.
        """
        text = files("exporter.node.simulation").joinpath("scenarios", f"{self.scenario}.json").read_bytes()
        document = msgspec.json.decode(text)
        document["epoch"] = epoch
        path = folder / f"{self.name}.json"
        path.write_bytes(msgspec.json.encode(document))
        return path


NODES = (
    SimulatedNode("gpu-a", "whole", {"nvidia.com/gpu": 8}, "NVIDIA-H200", 8),
    SimulatedNode(
        "gpu-b",
        "mig",
        {
            "nvidia.com/gpu": 1,
            "nvidia.com/mig-3g.40gb": 1,
            "nvidia.com/mig-1c.2g.20gb": 2,
            "nvidia.com/mig-1g.10gb": 2,
        },
        "NVIDIA-H100-80GB-HBM3",
        2,
        mig="mixed",
    ),
    SimulatedNode(
        "gpu-c", "time_sliced", {"nvidia.com/gpu.shared": 8}, "NVIDIA-A10-SHARED", 2, "time-slicing", replicas=4
    ),
)


@dataclass(frozen=True, slots=True)
class PendingWorkload:
    """Pending pods of one workload; `message` is the scheduler's."""

    namespace: str
    job: str
    pods: tuple[str, ...]
    gpus: int
    message: str
    seconds: float = OLDEST_PENDING_AGE_SECONDS
    """How long before the start of the demo the pods were created."""


PENDING = (
    PendingWorkload("vision", "segment-train", ("segment-train-0-4hqxd", "segment-train-1-w9ktz"), 8, TOO_FEW),
    PendingWorkload("research", "sweep-12", ("sweep-12-b7nnf",), 1, NO_MATCH, seconds=4 * 60.0),
)


def allocations(scenario: Scenario, t: float) -> list[KubeletAllocation]:
    """The allocations of a scenario at scenario time `t` (seconds), as a simulated kubelet takes them."""
    found = scenario.at(t).allocations
    return [(each.namespace, each.pod, each.container, each.resource, _ids(each)) for each in found]


def _ids(allocation: ScenarioAllocation) -> tuple[str, ...]:
    claim = f"@{allocation.claim}" if allocation.claim else ""
    return tuple(f"{device_id}{claim}" for device_id in allocation.devices)


def _running_pods(node: SimulatedNode, now: float) -> Iterator[KubernetesObject]:
    """The pods that the node's devices are allocated to; each requests what it was given."""
    requests_by_pod: dict[tuple[str, str], dict[str, int]] = {}
    for namespace, name, _, resource, devices in allocations(load(node.scenario), 0.0):
        requests_by_pod.setdefault((namespace, name), {})[resource] = len(list(devices))
    for (namespace, name), requests in requests_by_pod.items():
        kind, owner = OWNERS[name]
        labels = {"pod-template-hash": owner.rpartition("-")[2]} if kind == "ReplicaSet" else {}
        reference = objects.owner(kind, owner, namespace)
        pod = objects.pod(name, namespace, requests, reference, now - 3 * HOUR, labels)
        yield objects.running(pod, node.name, now - 3 * HOUR + 20)


def _pending_pods(workload: PendingWorkload, now: float) -> Iterator[KubernetesObject]:
    reference = objects.owner("Job", workload.job, workload.namespace)
    created = now - workload.seconds
    for name in workload.pods:
        pod = objects.pod(name, workload.namespace, {"nvidia.com/gpu": workload.gpus}, reference, created)
        yield objects.unschedulable(pod, workload.message, created)


def pods(now: float) -> list[KubernetesObject]:
    """Every GPU pod of the cluster."""
    running = [pod for node in NODES for pod in _running_pods(node, now)]
    return running + [pod for workload in PENDING for pod in _pending_pods(workload, now)]


def nodes(now: float) -> list[KubernetesObject]:
    """The nodes, ready and labeled as GPU feature discovery labels them."""
    return [
        objects.node(
            node.name,
            node.resources,
            objects.gpu_labels(node.product, node.count, node.sharing, node.replicas, node.mig),
            created=now - 30 * 24 * HOUR,
        )
        for node in NODES
    ]


def namespaces(of_pods: list[KubernetesObject], now: float) -> list[dict[str, Any]]:
    """The namespaces of these pods."""
    names = sorted({pod["metadata"]["namespace"] for pod in of_pods})
    return [objects.namespace(name, created=now - 30 * 24 * HOUR) for name in names]
