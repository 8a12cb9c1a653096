"""Simulated days of a node: which pod has which GPU when, and what each collection says of it."""

import random
from dataclasses import dataclass, field

from exporter.node.attribution.allocation import Allocation, Allocations
from exporter.node.attribution.matching.attribute import attribute
from exporter.node.audit.lines import decode
from exporter.node.audit.observation import AuditObservation, node_allocations
from exporter.node.audit.reasons import GapReason
from exporter.node.devices.entities.device import Device

BEGIN = 1_800_000_000.0
INTERVAL = 30.0
LONGEST = 3 * INTERVAL
GPUS = tuple(Device(f"GPU-{n}", n, f"00000000:0{n}:00.0", n, "NVIDIA H100 80GB HBM3") for n in range(8))


@dataclass(frozen=True)
class PodRun:
    """A pod that has one GPU from `begin` on, until `end`; both in Unix seconds."""

    gpu: str
    pod: str
    begin: float
    end: float


@dataclass
class Day:
    """Pods that follow each other on every GPU, with pauses between some of them."""

    runs: list[PodRun] = field(default_factory=list)

    def allocations(self, at: float) -> Allocations:
        return tuple(
            sorted(
                Allocation("team", run.pod, "main", "nvidia.com/gpu", run.gpu)
                for run in self.runs
                if run.begin <= at < run.end
            )
        )


def churn(seed: int, gpus: int, pods: int, seconds: float, least: float = 4 * INTERVAL) -> Day:
    """So many pods on so many GPUs; each lasts `least` seconds at least."""
    random_ = random.Random(seed)
    day = Day()
    per_gpu = pods // gpus
    for gpu in GPUS[:gpus]:
        cuts = sorted(random_.uniform(0, seconds - per_gpu * least) for _ in range(per_gpu))
        begins = [BEGIN + cut + number * least for number, cut in enumerate(cuts)]
        for number, begin in enumerate(begins):
            following = begins[number + 1] if number + 1 < len(begins) else BEGIN + seconds
            end = begin + least + random_.random() * (following - begin - least)
            day.runs.append(PodRun(gpu.uuid, f"{gpu.uuid.lower()}-{number}", begin, end))
    return day


def observed(allocations, at=BEGIN, inventory=GPUS, busy=0.5, memory=2.0**30, **more):
    """What a collection says where these are the kubelet's allocations; a reason where it says nothing."""
    if isinstance(allocations, GapReason):
        return AuditObservation(at, allocations, **more)
    node = node_allocations(attribute(inventory, allocations))
    return AuditObservation(at, node, [busy] * len(inventory), [memory] * len(inventory), **more)


def given(pod, gpu="GPU-0", *, namespace="team", container="main", resource="nvidia.com/gpu", uid=""):
    return Allocation(namespace, pod, container, resource, gpu, uid)


def decoded(content: bytes):
    """The lines of a log; each must be one."""
    lines = [decode(line) for line in content.splitlines()]
    assert None not in lines
    return lines


def of_event(lines, *types):
    return [line for line in lines if isinstance(line, types)]
