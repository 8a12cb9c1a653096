"""Growth of memory over many passes: the real flow with a fake clock, one pass right after another."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

import msgspec

from bench.fixture import ROOT, WHOLE, Scene
from bench.process import memory
from bench.stages import RULES, STYLE, Given, own_metrics
from bench.table import Row, Section
from exporter.collection_loop import Sampler
from exporter.node.attribution.allocation import Allocation
from exporter.node.devices.counters_file import Counters
from exporter.node.devices.readings import Readings
from exporter.node.pipeline import NodePipeline, NodeSources

BUDGET_MIB = 5.0
WARM_UP = 500
"""Passes until every cache and free list has its size."""


@dataclass(slots=True)
class Changing:
    """A kubelet whose pods come and go: one container in every pass is another one than before."""

    uuids: tuple[str, ...]
    passes: Callable[[], int] = field(default_factory=lambda: count().__next__)
    name: str = "kubelet"

    def read(self) -> tuple[Allocation, ...]:
        now = self.passes()
        pods = (f"worker-{place}-{(now + place) // len(self.uuids)}" for place in range(len(self.uuids)))
        held = zip(pods, self.uuids, strict=True)
        return tuple(Allocation("team", pod, "main", "nvidia.com/gpu", uuid) for pod, uuid in held)

    def close(self) -> None:
        """Holds nothing."""


def growth_section(scene: Scene, readings: Readings, passes: int) -> Section:
    """Resident memory of a process that does nothing else, before and after so many passes."""
    command = (sys.executable, "-m", "bench.growth", str(passes), str(scene.fields))
    given = msgspec.msgpack.encode(readings)
    answer = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
    before, after = map(float, answer.split())
    row = Row(f"resident memory over {passes:,} passes", after - before, "MiB", BUDGET_MIB, f"from {before:.1f} MiB")
    return Section("Growth", [row], ["The parent's flow in a process of its own; the pods change with every pass."])


def grow(counters: Counters, encoded: bytes, passes: int) -> tuple[float, float]:
    """MiB before and after, in this process; the readings of every pass are decoded anew."""
    decode = msgspec.msgpack.Decoder(Readings).decode
    given = Given(decode(encoded))
    uuids = tuple(device.uuid for device in given.answer.inventory)
    clock = count()
    pipeline = NodePipeline(
        NodeSources(given, Changing(uuids)), counters, STYLE, RULES, clock=lambda: next(clock) * 10.0
    )
    sampler = Sampler(pipeline.take, own_metrics(), 10.0, clock=lambda: 0.0)

    def run(times: int) -> float:
        for _ in range(times):
            given.answer = decode(encoded)
            sampler.sample()
        gc.collect()
        return memory(os.getpid()).resident

    return run(min(WARM_UP, passes)), run(passes)


if __name__ == "__main__":
    print(*grow(replace(WHOLE, fields=int(sys.argv[2])).counters(), sys.stdin.buffer.read(), int(sys.argv[1])))
