"""What is measured: a node with eight GPUs, whole or divided, its counters, its engine and its kubelet.

The engine is the stand-in libdcgm, played by a process of its own; the kubelet is the simulated one, likewise.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from exporter.node.devices.counters_file import Counter, Counters
from exporter.node.devices.field import Field, fields
from exporter.node.devices.readings import ReaderConfig
from exporter.node.simulation.scenario import load
from exporter.node.simulation.state import UTILISATION
from simulators.kubelet import Holder, SimulatedKubelet
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE

ROOT = Path(__file__).resolve().parent.parent
FIELDS = 40
SECONDS_TO_START = 30.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A node. With `divided`, every field is asked of every MIG instance, which no real field list does."""

    name: str
    scenario: str
    divided: bool
    fields: int = FIELDS

    def counters(self) -> Counters:
        """So many fields that have a number on every device of the scene, the usual ones first."""
        rows = [Counter(field.names[0], _type(field), f"Help of field {field.id}.", field) for field in self._fields()]
        return Counters(tuple(rows), ())

    def series(self) -> int:
        """How many DCGM-named series a page has."""
        boards = load(self.scenario).at(0.0).boards
        return self.fields * (sum(len(board.instances) for board in boards) if self.divided else len(boards))

    def counters_file(self) -> str:
        """A counters file that gives as many series: on instances, each spelling of a field is a row of its own."""
        chosen = [(name, field) for field in self._own() for name in field.names] if self.divided else [
            (field.names[0], field) for field in self._fields()
        ]  # fmt: skip
        return "".join(f"{name}, {_type(field)}, Help of {name}.\n" for name, field in chosen[: self.fields])

    def holders(self) -> list[Holder]:
        """A pod for each device that can be given out, but for the last, which is free."""
        boards = load(self.scenario).at(0.0).boards
        ids = [
            ([part.spec.uuid for instance in board.instances for part in instance.compute] or [board.spec.uuid])
            for board in boards
        ]
        flat = [device_id for some in ids for device_id in some][:-1]
        resource = "nvidia.com/mig-1g.10gb" if self.divided else "nvidia.com/gpu"
        return [("team", f"worker-{number}", "main", resource, (one,)) for number, one in enumerate(flat)]

    def _fields(self) -> list[Field]:
        scope: Literal["instance", "board"] = "instance" if self.divided else "board"
        cells = load(self.scenario).at(0.0).boards[0].cells
        numbers = [field for field in fields().values() if field.kind != "string" and field.id in cells]
        if self.divided:  # what a real engine leaves blank on instances
            numbers = [f for f in numbers if f.id not in UTILISATION and (f.scope, f.watch) != ("board", "profiling")]
        usual = sorted(numbers, key=lambda field: (field.scope == "board", field.id))
        return [replace(field, scope=scope) for field in usual[: self.fields]]

    def _own(self) -> list[Field]:
        cells = load(self.scenario).at(0.0).boards[0].instances[0].cells
        return [f for f in fields().values() if f.scope == "instance" and f.kind != "string" and f.id in cells]


WHOLE = Scene("8 GPUs x 40 fields", "whole", divided=False)
DIVIDED = Scene("56 MIG instances x 40 fields", str(ROOT / "tests/fakes/scenarios/mig_56.json"), divided=True)


def _type(field: Field) -> Literal["counter", "gauge"]:
    return "counter" if field.unit in {"mJ", "ns"} else "gauge"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stand-ins of a scene are, while they run."""

    folder: Path
    library: Path
    socket: Path
    counters_file: Path
    bytecode: Path

    def environment(self) -> dict[str, str]:
        """What a reader child needs in order to find the stand-in libdcgm and what it plays."""
        return {**os.environ, VARIABLE: str(self.folder / "table"), "LD_LIBRARY_PATH": str(self.library.parent)}

    def reader_config(self, counters: Counters, interval: float = 10.0) -> ReaderConfig:
        wanted = tuple(field.wanted() for field in counters.fields)
        return ReaderConfig("dcgm", wanted, interval, remote="localhost:5555", library=str(self.library))


@contextmanager
def played(scene: Scene, folder: Path) -> Iterator[Place]:
    """The scene's engine and kubelet, running in processes of their own while the block runs."""
    library = build(folder / "lib", only="libdcgm.so.4")["libdcgm.so.4"]
    place = Place(folder, library, folder / "kubelet.sock", folder / "counters.csv", folder.parent / "bytecode")
    place.counters_file.write_text(scene.counters_file())
    os.environ[VARIABLE] = str(folder / "table")
    player = (sys.executable, "-m", "tests.fakes.scenario_table", scene.scenario, str(folder / "table"), "1")
    kubelet = (sys.executable, "-m", "bench.fixture", scene.scenario, str(int(scene.divided)), str(place.socket))
    processes = [subprocess.Popen(command, cwd=ROOT) for command in (player, kubelet)]
    try:
        _wait_for(folder / "table", place.socket)
        yield place
    finally:
        os.environ.pop(VARIABLE, None)
        for process in processes:
            process.kill()
            process.wait()


def _wait_for(*paths: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while not all(path.exists() for path in paths):
        if time.monotonic() > end:
            raise TimeoutError(f"the stand-ins did not start: {', '.join(str(p) for p in paths if not p.exists())}")
        time.sleep(0.02)


def _serve_kubelet(scenario: str, divided: str, socket: str) -> None:
    holders = Scene("", scenario, divided == "1").holders()
    with SimulatedKubelet(Path(socket), lambda: holders):
        threading.Event().wait()


if __name__ == "__main__":
    _serve_kubelet(*sys.argv[1:])
