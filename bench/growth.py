"""Measures how much memory grows over many collections (one collection is one round of reading and rendering).

The real pipeline with a fake clock, one collection right after another, in a process of its own.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

import msgspec

from bench.fixture import ROOT, WHOLE, BenchNode
from bench.process import memory
from bench.stages import RULES, STYLE, FixedSource, exporter_metrics
from bench.table import BenchSection, Figure
from exporter.collection_loop import CollectionLoop
from exporter.node.attribution.allocation import Allocation
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.readings.readings import Readings
from exporter.node.pipeline import NodePipeline, NodeSources

BUDGET_MIB = 5.0
WARM_UP = 500
"""Collections until every cache and free list has its size."""


@dataclass(slots=True)
class ChangingKubelet:
    """A kubelet whose pods change: in every read one pod is replaced by a new one."""

    uuids: tuple[str, ...]
    next_read: Callable[[], int] = field(default_factory=lambda: count().__next__)
    name: str = "kubelet"

    def read(self) -> tuple[Allocation, ...]:
        """Allocate every device to one pod."""
        number = self.next_read()
        pods = (f"worker-{i}-{(number + i) // len(self.uuids)}" for i in range(len(self.uuids)))
        allocated = zip(pods, self.uuids, strict=True)
        return tuple(Allocation("team", pod, "main", "nvidia.com/gpu", uuid) for pod, uuid in allocated)

    def close(self) -> None:
        """Do nothing."""


def growth_section(node: BenchNode, readings: Readings, collections: int) -> BenchSection:
    """Measure the resident memory of a process that does nothing else, before and after so many collections."""
    command = (sys.executable, "-m", "bench.growth", str(collections), str(node.fields))
    given = msgspec.msgpack.encode(readings)
    output = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
    before, after = map(float, output.split())
    what = f"growth of resident memory over {collections:,} collections"
    row = Figure(what, after - before, "MiB", BUDGET_MIB, f"from {before:.1f} MiB")
    remark = "The pipeline of the parent process, in a process of its own; the pods change with every collection."
    return BenchSection("Growth", [row], [remark])


def grow(counters: Counters, encoded: bytes, collections: int) -> tuple[float, float]:
    """Collect in this process. Returns its resident memory before and after, in MiB.

    The readings are decoded again for every collection, as they are when they come from a reader process.
    """
    decode = msgspec.msgpack.Decoder(Readings).decode
    source = FixedSource(decode(encoded))
    uuids = tuple(device.uuid for device in source.readings.inventory)
    clock = count()
    pipeline = NodePipeline(
        NodeSources(source, ChangingKubelet(uuids)), counters, STYLE, RULES, clock=lambda: next(clock) * 10.0
    )
    loop = CollectionLoop(pipeline.collect, exporter_metrics(), 10.0, clock=lambda: 0.0)
    assert loop.exposition.text_gzip, (
        "nothing to scrape"
    )  # each collection makes what was asked for, as for a Prometheus

    def run(times: int) -> float:
        for _ in range(times):
            # Time passes, as it does on a node: what is counted within a window leaves it again.
            source.readings = msgspec.structs.replace(decode(encoded), taken_at=next(clock) * 10.0)
            loop.collect()
        gc.collect()
        return memory(os.getpid()).resident

    return run(min(WARM_UP, collections)), run(collections)


if __name__ == "__main__":
    print(*grow(replace(WHOLE, fields=int(sys.argv[2])).counters(), sys.stdin.buffer.read(), int(sys.argv[1])))
