"""The simulated cluster: three GPU nodes, the pods that hold their GPUs, and the pods that wait. Plain data."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from exporter.node.simulation.scenario import Scenario, load
from simulators import objects
from simulators.kubelet import Holder
from simulators.objects import Object

HOUR = 3600.0
PENDING_SINCE = 42 * 60.0
"""Seconds before the start at which the waiting pods were created."""
TOO_FEW = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available."
NO_MATCH = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."

OWNERS = {
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
    """One node: its name, what its GPUs do, and what it offers to the scheduler."""

    name: str
    scenario: str
    resources: dict[str, int]
    product: str
    count: int
    sharing: str = "none"
    replicas: int = 1
    mig: str = "single"

    def write_scenario(self, folder: Path, epoch: float) -> Path:
        """The built-in scenario with a fixed beginning, so that history and present play the same story."""
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
class Waiting:
    """Pods of one workload that do not run, with what the scheduler says of them."""

    space: str
    job: str
    pods: tuple[str, ...]
    gpus: int
    message: str
    since: float = PENDING_SINCE


WAITING = (
    Waiting("vision", "segment-train", ("segment-train-0-4hqxd", "segment-train-1-w9ktz"), 8, TOO_FEW),
    Waiting("research", "sweep-12", ("sweep-12-b7nnf",), 1, NO_MATCH, since=4 * 60.0),
)


def holders(scenario: Scenario, t: float) -> list[Holder]:
    """Who holds what at scenario time `t`, as a kubelet tells it."""
    return [(h.namespace, h.pod, h.container, h.resource, h.devices) for h in scenario.at(t).holders]


def _held_pods(node: SimulatedNode, now: float) -> Iterator[Object]:
    asked: dict[tuple[str, str], dict[str, int]] = {}
    for space, name, _, resource, devices in holders(load(node.scenario), 0.0):
        asked.setdefault((space, name), {})[resource] = len(list(devices))
    for (space, name), requests in asked.items():
        kind, owner = OWNERS[name]
        labels = {"pod-template-hash": owner.rpartition("-")[2]} if kind == "ReplicaSet" else {}
        reference = objects.owner(kind, owner, space)
        pod = objects.pod(name, space, requests, reference, now - 3 * HOUR, labels)
        yield objects.running(pod, node.name, now - 3 * HOUR + 20)


def _waiting_pods(waiting: Waiting, now: float) -> Iterator[Object]:
    reference = objects.owner("Job", waiting.job, waiting.space)
    for name in waiting.pods:
        pod = objects.pod(name, waiting.space, {"nvidia.com/gpu": waiting.gpus}, reference, now - waiting.since)
        yield objects.unschedulable(pod, waiting.message, now - waiting.since)


def pods(now: float) -> list[Object]:
    """Every pod of the cluster that asks for GPUs."""
    running = [pod for node in NODES for pod in _held_pods(node, now)]
    return running + [pod for waiting in WAITING for pod in _waiting_pods(waiting, now)]


def nodes(now: float) -> list[Object]:
    """The node objects, ready and labelled as GPU feature discovery would."""
    return [
        objects.node(
            node.name,
            node.resources,
            objects.gpu_labels(node.product, node.count, node.sharing, node.replicas, node.mig),
            created=now - 30 * 24 * HOUR,
        )
        for node in NODES
    ]


def namespaces(of_pods: list[Object], now: float) -> list[dict[str, Any]]:
    """A namespace object for each that the pods name."""
    spaces = sorted({pod["metadata"]["namespace"] for pod in of_pods})
    return [objects.namespace(name, created=now - 30 * 24 * HOUR) for name in spaces]
