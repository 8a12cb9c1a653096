"""Writes what 1,250 node exporters, the cluster watcher, stock dcgm-exporters and kube-state-metrics expose.

A node is made of a golden exposition of our exporter, with names of its own: 8 whole GPUs, 8 GPUs with 7 MIG devices
each, or 8 GPUs that up to 3 pods share. On every node each GPU or MIG device has pods of its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "tests/golden"
PODS_PER_WORKLOAD = 4
NODE = "node-1"
"""The name of the node in the golden expositions."""

_UUID = re.compile(r'UUID="GPU-(\w+)')
_POD = re.compile(r'\b((?:gpu_)?pod)="([^"]+)"')
_EMPTY = re.compile(r',\w+=""')
_GPU = re.compile(r'\bgpu="(\d+)"')
_ALLOCATION = re.compile(r'^gpugauge_allocation_info\{.*gpu_namespace="([^"]+)",gpu_pod="([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FleetSize:
    """How many nodes of each kind there are, each with 8 GPUs, and how many pods are pending."""

    whole: int = 900
    partitioned: int = 220
    shared: int = 130
    pending: int = 1060

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.whole + self.partitioned + self.shared


@dataclass(frozen=True, slots=True)
class FleetPod:
    """A GPU pod; `node` is empty while it is pending."""

    namespace: str
    name: str
    node: str
    number: int

    @property
    def labels(self) -> str:
        """The labels that name it, as an exporter with `honor_labels` has them."""
        plain = f'namespace="{self.namespace}",pod="{self.name}"'
        return f'{plain},gpu_namespace="{self.namespace}",gpu_pod="{self.name}"'

    @property
    def workload(self) -> str:
        """The labels of its workload, which has PODS_PER_WORKLOAD pods of one namespace."""
        return f'workload="job-{self.namespace}-{self.number // PODS_PER_WORKLOAD}",workload_type="job"'


def node_names(size: FleetSize) -> Iterator[tuple[str, str]]:
    """Yield the name of each node, and the golden exposition that it is made of."""
    for kind, number in (("whole", size.whole), ("mig_56", size.partitioned), ("time_sliced", size.shared)):
        for each in range(number):
            yield f"{kind.replace('_', '-')}-{each}", kind


def node_exposition(name: str, kind: str) -> str:
    """The exposition of our exporter on a node, without comments."""
    return _template(kind).replace(NODE, name)


def stock_exposition(name: str, kind: str) -> str:
    """The same of a stock dcgm-exporter: the DCGM-named series, without empty labels."""
    return _stock_template(kind).replace(NODE, name)


@cache
def _template(kind: str) -> str:
    text = (GOLDEN / f"{kind}.prom").read_text().replace(" *\n", " 1\n")  # a value that no test compares
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    of_gpus = [line for line in lines if "UUID=" in line]
    found = len(set(_UUID.findall("\n".join(of_gpus))))
    every = [line for line in lines if "UUID=" not in line]
    for copy in range(8 // found):
        every += [_renamed(line, copy, found) for line in of_gpus]
    return "".join(f"{line}\n" for line in every)


def _renamed(line: str, copy: int, gpus: int) -> str:
    uuid = _UUID.findall(line)[0]
    line = _UUID.sub(rf'UUID="GPU-{NODE}-{copy}-\1', line)
    line = _GPU.sub(lambda found: f'gpu="{int(found[1]) + copy * gpus}"', line)
    return _POD.sub(rf'\1="\2-{uuid[:4]}-{copy}-{NODE}"', line)


@cache
def _stock_template(kind: str) -> str:
    lines = [line for line in _template(kind).splitlines() if line.startswith("DCGM_")]
    return "".join(_EMPTY.sub("", line) + "\n" for line in lines)


def pods(size: FleetSize) -> Iterator[FleetPod]:
    """Yield every GPU pod: those that have devices, each once, and those that are pending."""
    counts: dict[str, int] = {}
    for name, kind in node_names(size):
        for namespace, pod in dict.fromkeys(_ALLOCATION.findall(node_exposition(name, kind))):
            counts[namespace] = counts.get(namespace, -1) + 1
            yield FleetPod(namespace, pod, name, counts[namespace])
    for number in range(size.pending):
        yield FleetPod("batch", f"pending-{number}", "", number)


def watcher_exposition(size: FleetSize, now: float) -> str:
    """The exposition of the cluster watcher."""
    return "".join(f"{series}\n" for series in (*_pod_series(size, now), *_node_series(size)))


def _pod_series(size: FleetSize, now: float) -> Iterator[str]:
    for pod in pods(size):
        owner = f'{pod.workload},workload_class="training",priority_class=""'
        phase = "Running" if pod.node else "Pending"
        yield f'gpugauge_gpu_pod_info{{{pod.labels},node="{pod.node}",{owner}}} 1'
        yield f'gpugauge_gpu_pod_phase{{{pod.labels},phase="{phase}"}} 1'
        if pod.node:
            yield f"gpugauge_gpu_pod_start_timestamp_seconds{{{pod.labels}}} {now - 7200}"
        else:
            since = "gpugauge_pending_pod_since_timestamp_seconds"
            yield f'{since}{{{pod.labels},{pod.workload},resource="nvidia_com_gpu"}} {now - 7200}'
            yield f'gpugauge_pending_pod_reason{{{pod.labels},{pod.workload},reason="insufficient_gpu"}} 1'


def _node_series(size: FleetSize) -> Iterator[str]:
    values = {"capacity": 8, "allocatable": 8, "requested": 7, "free": 1}
    for name, _ in node_names(size):
        gpus = f'node="{name}",resource="nvidia_com_gpu",model="NVIDIA-H100-80GB-HBM3"'
        yield from (f"gpugauge_node_gpu_{what}{{{gpus}}} {value}" for what, value in values.items())
        yield f'gpugauge_node_gpu_schedulable{{node="{name}"}} 1'
        yield f'gpugauge_node_device_plugin_registered{{node="{name}"}} 1'
        yield f'gpugauge_node_info{{node="{name}",model="NVIDIA-H100-80GB-HBM3",gpu_count="8",pool="batch"}} 1'
    yield 'gpugauge_watch_last_sync_timestamp_seconds{object="pods"} 1'


def state_exposition(size: FleetSize, now: float) -> str:
    """What kube-state-metrics exposes of the GPU pods, and of as many others, as far as the adapter reads it."""
    lines = []
    for pod in pods(size):
        for other in ("", "-without-gpu"):
            labels = f'namespace="{pod.namespace}",pod="{pod.name}{other}",uid="{pod.name}{other}"'
            lines.append(f"kube_pod_start_time{{{labels}}} {now - 7200}\n")
            for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
                value = int(phase == ("Running" if pod.node else "Pending"))
                lines.append(f'kube_pod_status_phase{{{labels},phase="{phase}"}} {value}\n')
            owner = f'owner_kind="Job",owner_name="job-{pod.number // PODS_PER_WORKLOAD}",owner_is_controller="true"'
            lines.append(f"kube_pod_owner{{{labels},{owner}}} 1\n")
    return "".join(lines)
