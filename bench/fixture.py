"""Makes what the bench measures: a node with eight GPUs, whole or MIG-enabled, with counters file, engine and kubelet.

The host engine is the fake libdcgm of the tests, whose table of samples another process keeps current; the simulated
kubelet is a process, too.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from exporter.node.devices.counters.counters_file import CounterRow, Counters
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.fields.field import Field, fields
from exporter.node.devices.fields.field_ids import UTILIZATION
from exporter.node.simulation.scenario import load
from simulators.kubelet import KubeletAllocation, SimulatedKubelet
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE

ROOT = Path(__file__).resolve().parent.parent
FIELDS = 40
START_SECONDS = 30.0
ENGINE_SOCKET = "engine.sock"


@dataclass(frozen=True, slots=True)
class BenchNode:
    """A node. With `mig`, every field is read on every MIG device, which no real counters file leads to."""

    name: str
    scenario: str
    mig: bool
    fields: int = FIELDS
    pods: int = 0
    """With 0, one pod for each device that can be allocated but the last, which is unallocated."""
    replicas: int = 0
    """Of each device; all of them are given to the pods, which have about as many each."""

    def counters(self) -> Counters:
        """The first `fields` fields that have a number on every device of the scenario, those of MIG devices first."""
        rows = [
            CounterRow(field.names[0], _type(field), f"Help of field {field.id}.", field) for field in self._fields()
        ]
        return Counters(tuple(rows), ())

    def series(self) -> int:
        """How many DCGM-named series an exposition has."""
        gpus = load(self.scenario).at(0.0).gpus
        return self.fields * (sum(len(gpu.instances) for gpu in gpus) if self.mig else len(gpus))

    def counters_file(self) -> str:
        """Text of a counters file that gives as many series; with `mig`, each name of a field is a row of its own."""
        chosen = [(name, field) for field in self._instance_fields() for name in field.names] if self.mig else [
            (field.names[0], field) for field in self._fields()
        ]  # fmt: skip
        return "".join(f"{name}, {_type(field)}, Help of {name}.\n" for name, field in chosen[: self.fields])

    def allocations(self) -> list[KubeletAllocation]:
        """What the kubelet lists."""
        gpus = load(self.scenario).at(0.0).gpus
        ids = [
            ([compute.spec.uuid for instance in gpu.instances for compute in instance.compute] or [gpu.spec.uuid])
            for gpu in gpus
        ]
        flat = [device_id for of_gpu in ids for device_id in of_gpu]
        resource = "nvidia.com/mig-1g.10gb" if self.mig else "nvidia.com/gpu"
        if self.replicas:
            every = [f"{device_id}::{number}" for device_id in flat for number in range(self.replicas)]
            cuts = [len(every) * number // self.pods for number in range(self.pods + 1)]
            parts = (every[begin:end] for begin, end in pairwise(cuts))
            return [("team", f"worker-{n}", "main", f"{resource}.shared", ids) for n, ids in enumerate(parts)]
        flat.pop()
        return [("team", f"worker-{number}", "main", resource, (one,)) for number, one in enumerate(flat)]

    def _fields(self) -> list[Field]:
        scope: Literal["instance", "gpu"] = "instance" if self.mig else "gpu"
        samples = load(self.scenario).at(0.0).gpus[0].samples
        numbers = [field for field in fields().values() if field.kind != "string" and field.id in samples]
        if self.mig:  # without the fields that a real engine leaves blank on MIG devices
            numbers = [f for f in numbers if f.id not in UTILIZATION and (f.scope, f.watch) != ("gpu", "profiling")]
        in_order = sorted(numbers, key=lambda field: (field.scope == "gpu", field.id))
        return [replace(field, scope=scope) for field in in_order[: self.fields]]

    def _instance_fields(self) -> list[Field]:
        samples = load(self.scenario).at(0.0).gpus[0].instances[0].samples
        return [f for f in fields().values() if f.scope == "instance" and f.kind != "string" and f.id in samples]


WHOLE = BenchNode("8 GPUs x 40 fields", "whole", mig=False)
PARTITIONED = BenchNode("56 MIG devices x 40 fields", str(ROOT / "tests/fakes/scenarios/mig_56.json"), mig=True)

SHARED = replace(PARTITIONED, name="56 MIG devices x 40 fields, 80 replicas of each, 250 pods", pods=250, replicas=80)


def last_series(names: str) -> bytes:
    """How the series begin that an exposition has last: engine activity, where its fields are among these names.

    The engine has it one interval after the first read.
    """
    return b"\nDCGM_FI_PROF_" if "DCGM_FI_PROF_" in names else b"\nDCGM_FI_"


def _type(field: Field) -> Literal["counter", "gauge"]:
    return "counter" if field.unit in {"mJ", "ns"} else "gauge"


@dataclass(frozen=True, slots=True)
class RunningFakes:
    """The files and folders of a node's fakes, while they run."""

    folder: Path
    library: Path
    socket: Path
    counters_file: Path
    bytecode: Path

    @property
    def engine(self) -> str:
        """The address of the host engine."""
        return f"unix://{self.folder / ENGINE_SOCKET}"

    def environment(self) -> dict[str, str]:
        """The environment in which a reader process finds the fake libdcgm, and that finds its table."""
        return {**os.environ, VARIABLE: str(self.folder / "table"), "LD_LIBRARY_PATH": str(self.library.parent)}

    def reader_config(self, counters: Counters, interval: float = 1.0) -> ReaderConfig:
        """The configuration of a reader process; `interval` is in seconds."""
        return ReaderConfig("dcgm", counters.wanted, interval, remote=self.engine, libdcgm=str(self.library))


@contextmanager
def running_fakes(node: BenchNode, folder: Path) -> Iterator[RunningFakes]:
    """Run the node's host engine and kubelet in processes of their own."""
    library = build(folder / "lib", only="libdcgm.so.4")["libdcgm.so.4"]
    fakes = RunningFakes(folder, library, folder / "kubelet.sock", folder / "counters.csv", folder.parent / "bytecode")
    fakes.counters_file.write_text(node.counters_file())
    os.environ[VARIABLE] = str(folder / "table")
    table = (sys.executable, "-m", "tests.fakes.scenario_table", node.scenario, str(folder / "table"), "1")
    listening = (*table, str(folder / ENGINE_SOCKET))
    shared = (str(node.pods), str(node.replicas))
    kubelet = (sys.executable, "-m", "bench.fixture", node.scenario, str(int(node.mig)), str(fakes.socket), *shared)
    processes = [subprocess.Popen(command, cwd=ROOT) for command in (listening, kubelet)]
    try:
        _wait_for(folder / "table", folder / ENGINE_SOCKET, fakes.socket)
        yield fakes
    finally:
        os.environ.pop(VARIABLE, None)
        for process in processes:
            process.kill()
            process.wait()


def _wait_for(*paths: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not all(path.exists() for path in paths):
        if time.monotonic() > end:
            raise TimeoutError(f"the fakes did not start: {', '.join(str(p) for p in paths if not p.exists())}")
        time.sleep(0.02)


def _serve_kubelet(scenario: str, mig: str, socket: str, pods: str = "0", replicas: str = "0") -> None:
    node = BenchNode("", scenario, mig == "1", pods=int(pods), replicas=int(replicas))
    allocations = node.allocations()
    with SimulatedKubelet(Path(socket), lambda: allocations):
        threading.Event().wait()


if __name__ == "__main__":
    _serve_kubelet(*sys.argv[1:])
