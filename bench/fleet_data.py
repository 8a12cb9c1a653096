"""Writes what 1,250 node exporters and a watcher expose, as far as rules read it.

The fleet: 1,000 nodes with 8 whole GPUs, 150 whose 8 GPUs are divided into 7 MIG devices each, and 100 whose 8 GPUs are
time-sliced among 4 pods each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

WHOLE, PARTITIONED, SHARED = 1000, 150, 100
GPUS, INSTANCES, SHARING_PODS = 8, 7, 4


@dataclass(frozen=True, slots=True)
class FleetSize:
    """How many nodes of each kind there are."""

    whole: int = WHOLE
    partitioned: int = PARTITIONED
    shared: int = SHARED


class FleetPod(NamedTuple):
    """A pod and its node."""

    name: str
    node: str

    @property
    def labels(self) -> str:
        """The labels that name it, as an exporter with `honor_labels` has them."""
        namespace = f"team-{hash_of(self.name) % 60}"
        plain = f'namespace="{namespace}",pod="{self.name}"'
        return f'{plain},gpu_namespace="{namespace}",gpu_pod="{self.name}"'


class FleetDevice(NamedTuple):
    """A GPU or MIG device, the pods that it is allocated to, and whether it is partitioned."""

    node: str
    gpu: int
    instance: int
    pods: tuple[FleetPod, ...]
    partitioned: bool = False

    @property
    def labels(self) -> str:
        """The labels that identify it, and those of its scrape target."""
        number = f',GPU_I_ID="{self.instance}"' if self.instance >= 0 else ""
        target = f'job="gpugauge-node",instance="{self.node}:9400"'
        return f'UUID="GPU-{self.node}-{self.gpu}"{number},node="{self.node}",{target}'


def hash_of(name: str) -> int:
    """A number that depends on the name alone."""
    return sum(ord(letter) * (place + 1) for place, letter in enumerate(name))


def devices(size: FleetSize) -> Iterator[FleetDevice]:
    """Yield every device. Each eighth whole GPU is unallocated."""
    for number in range(size.whole):
        node = f"whole-{number}"
        for gpu in range(GPUS):
            pods = (FleetPod(f"{node}-{gpu}", node),) if gpu else ()
            yield FleetDevice(node, gpu, -1, pods)
    for number in range(size.partitioned):
        node = f"mig-{number}"
        for gpu in range(GPUS):
            yield FleetDevice(node, gpu, -1, (), partitioned=True)
            for instance in range(INSTANCES):
                yield FleetDevice(node, gpu, instance, (FleetPod(f"{node}-{gpu}-{instance}", node),))
    for number in range(size.shared):
        node = f"shared-{number}"
        for gpu in range(GPUS):
            yield FleetDevice(node, gpu, -1, tuple(FleetPod(f"{node}-{gpu}-{p}", node) for p in range(SHARING_PODS)))


SeriesValues = Iterator[tuple[str, float]]
"""The labels of each series of one metric, and its value."""


def families(size: FleetSize, started: float) -> Iterator[tuple[str, SeriesValues]]:
    """Yield each metric with its series. `started` is when the pods were started, in Unix seconds."""
    every = list(devices(size))
    smallest = [device for device in every if not device.partitioned]
    gpus = [device for device in every if device.instance < 0]
    alone = [device for device in smallest if len(device.pods) == 1]
    yield "gpugauge_device_info", ((f'{d.labels},gpu="{d.gpu}",model="NVIDIA-H100-80GB-HBM3"', 1) for d in every)
    for name in ("busy_ratio", "tensor_active_ratio", "dram_active_ratio"):
        yield f"gpugauge_device_{name}", ((d.labels, _busy(d)) for d in smallest)
    for name, value in (("memory_used_bytes", 4e10), ("memory_total_bytes", 8e10)):
        yield f"gpugauge_device_{name}", ((d.labels, value) for d in smallest)
    for name, value in (("power_watts", 300), ("temperature_celsius", 60)):
        yield f"gpugauge_gpu_{name}", ((d.labels, value) for d in gpus)
    yield "gpugauge_device_allocated_pods", ((f'{d.labels},gpu="{d.gpu}"', len(d.pods)) for d in smallest)
    pairs = [(device, pod) for device in smallest for pod in device.pods]
    info = 'container="main",gpu_container="main",resource="nvidia_com_gpu",sharing="exclusive"'
    yield "gpugauge_allocation_info", ((f'{d.labels},gpu="{d.gpu}",{p.labels},{info}', 1) for d, p in pairs)
    for name in ("busy_ratio", "tensor_active_ratio", "memory_used_bytes"):
        yield f"gpugauge_allocation_{name}", ((f"{d.labels},{d.pods[0].labels}", _busy(d)) for d in alone)
    watcher = 'job="gpugauge-cluster",instance="watcher:9410"'
    owner = 'workload_type="Job",workload_class="training",priority_class=""'
    pods = [pod for _, pod in pairs]
    yield (
        "gpugauge_gpu_pod_info",
        ((f'{p.labels},node="{p.node}",workload="{p.name}",{owner},{watcher}', 1) for p in pods),
    )
    yield "gpugauge_gpu_pod_start_timestamp_seconds", ((f"{p.labels},{watcher}", started) for p in pods)
    yield "gpugauge_gpu_pod_phase", ((f'{p.labels},phase="Running",{watcher}', 1) for p in pods)


def _busy(device: FleetDevice) -> float:
    return hash_of(device.labels) % 100 / 100


def exposition(size: FleetSize, now: float) -> str:
    """Every series with its value, in the text format, with this time in Unix seconds."""
    at = round(now * 1000)
    return "".join(
        f"{name}{{{labels}}} {value} {at}\n" for name, series in families(size, now - 7200) for labels, value in series
    )
