"""Growth of memory over many passes: the real flow with a fake clock, one pass right after another."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import msgspec

from bench.process import memory
from bench.stages import RULES, STYLE, Given, own_metrics
from bench.table import Row, Section
from exporter.node.allocation import Allocation
from exporter.node.counters import Counters
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.reading import Readings
from exporter.sampler import Sampler

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


def growth_section(counters: Counters, readings: Readings, passes: int) -> Section:
    """Resident memory of this process before and after so many passes with changing pods and values."""
    given = Given(readings)
    clock = count()
    uuids = tuple(device.uuid for device in readings.inventory)
    pipeline = NodePipeline(
        NodeSources(given, Changing(uuids)), counters, STYLE, RULES, clock=lambda: next(clock) * 10.0
    )
    sampler = Sampler(pipeline.take, own_metrics(), 10.0, clock=lambda: 0.0)
    encoded = msgspec.msgpack.encode(readings)
    decode = msgspec.msgpack.Decoder(Readings).decode

    def run(times: int) -> None:
        for _ in range(times):
            given.answer = decode(encoded)
            sampler.sample()

    run(min(WARM_UP, passes))
    before = _settled()
    run(passes)
    row = Row(f"resident memory over {passes:,} passes", _settled() - before, "MiB", BUDGET_MIB)
    return Section("Growth", [row], ["In this process, with pods that come and go; the parent's part of the flow."])


def _settled() -> float:
    gc.collect()
    return memory(os.getpid()).resident
