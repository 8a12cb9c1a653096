"""Measures what remains after changes: of GPUs, of MIG devices, of the engine, and of killed reader processes.

Sources, pipeline and rendering are real; the host engine is the fake libdcgm. Time is simulated, so that one collection
follows another at once.
"""

import ctypes
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, replace
from itertools import count
from pathlib import Path

from bench.fixture import ROOT, START_SECONDS
from bench.growth import BUDGET_MIB, ChangingKubelet
from bench.process import memory
from bench.stages import RULES, STYLE, exporter_metrics
from bench.table import BenchSection, Figure
from exporter.collection_loop import CollectionLoop
from exporter.node.counters_watch import load_counters
from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.connection import EngineConnection
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.reader.supervisor import Reader
from exporter.node.simulation.scenario import Scenario, parse
from exporter.source import SourceError
from tests.fakes.build import build
from tests.fakes.engine_socket import EngineSocket
from tests.fakes.scenario_table import VARIABLE
from tests.fakes.table_bytes import table

STEP = 10.0
"""Seconds of simulated time from one collection to the next."""
COLLECTIONS_PER_CYCLE = 100
"""Collections after which the changes begin again. Nothing is wrong when a cycle ends, so that ends can be compared."""
FIRST_COLLECTIONS = 2
"""Collections until every field has a value, and before the first change."""
WARM_UP_CYCLES = 5
EPOCH = 1_800_000_000.0
KILLS_EVERY = 5
"""Collections from one kill of the reader process to the next."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a process occupies, and what the fake engine has left for others."""

    resident: float
    """MiB."""
    descriptors: int
    threads: int
    groups: int = 0
    """DCGM groups that are not in use."""
    field_groups: int = 0
    """Likewise."""


def own_resources(groups: int = 0, field_groups: int = 0) -> Resources:
    """What this process occupies now."""
    gc.collect()
    descriptors, threads = (len(os.listdir(f"/proc/self/{what}")) for what in ("fd", "task"))  # noqa: PTH208
    return Resources(memory(os.getpid()).resident, descriptors, threads, groups, field_groups)


def scenario() -> Scenario:
    """A MIG-enabled GPU and a whole one, to which everything happens that happens to GPUs."""
    path = ROOT / "exporter/node/simulation/scenarios/mig.json"
    document = json.loads(path.read_text())
    partitioned, whole = (device["uuid"] for device in document["devices"][:2])
    instances = document["devices"][0]["instances"]
    # Few changes after the last connection is made: groups that each of them left behind would not use up all that
    # there are, upon which the source connects again and has none.
    document["events"] = [
        {"event": "lost", "at": 100, "for": 100, "device": whole, "as": "status"},
        {"event": "lost", "at": 250, "for": 100, "device": whole, "as": "absent"},
        {"event": "mig", "at": 400, "for": 100, "device": partitioned, "mig": True, "instances": instances[:1]},
        {"event": "restart", "at": 520, "for": 30},
        {"event": "disconnect", "at": 600, "for": 40},
        {"event": "mig", "at": 700, "for": 30, "device": partitioned, "mig": False, "instances": []},
        {"event": "samples", "at": 780, "for": 50, "sentinel": "blank"},
        {"event": "xid", "at": 880, "device": whole, "xid": 79},
    ]
    return parse(json.dumps(document), path.name)


class ChangingEngine:
    """The scenario table of the fake library, cycle after cycle, at a time that only `step` moves on."""

    def __init__(self, folder: Path) -> None:
        self.library = build(folder / "lib", only="libdcgm.so.4")["libdcgm.so.4"]
        self._scenario, self._path = scenario(), folder / "table"
        self._ticks = 0
        self._socket = EngineSocket(folder / "engine.sock")
        self.address = self._socket.address
        self.uuids = tuple(gpu.spec.uuid for gpu in self._scenario.at(0.0).gpus)
        os.environ[VARIABLE] = str(self._path)
        self.step()

    @property
    def elapsed(self) -> float:
        """Seconds since the begin."""
        return self._ticks * STEP

    def now(self) -> float:
        """Unix seconds."""
        return EPOCH + self.elapsed

    def step(self) -> None:
        """Go on to the time of the next collection."""
        self._ticks += 1
        draft = self._path.with_suffix(".new")
        state = self._scenario.at(self.elapsed % (COLLECTIONS_PER_CYCLE * STEP))
        draft.write_bytes(table(state, self.now(), self._ticks))
        draft.replace(self._path)
        self._socket.follow(listens=state.connected)

    def config(self, counters: Counters) -> ReaderConfig:
        """The configuration of a source that reads these counters from this engine."""
        wanted = tuple(field.wanted() for field in counters.fields)
        return ReaderConfig("dcgm", wanted, STEP, remote=self.address, libdcgm=str(self.library))

    def close(self) -> None:
        """End to listen."""
        self._socket.follow(listens=False)


def unused_groups(library: DcgmLibrary, remote: str) -> tuple[int, int]:
    """How many groups and field groups the engine still gives to another client, which asks until it is refused."""
    with closing(EngineConnection(library, remote)) as connection:
        made = ctypes.c_size_t()
        field = (ctypes.c_uint16 * 1)(155)
        for groups in count():  # noqa: B007 - used after the loop
            if connection.status("dcgmGroupCreate", 1, b"probe", ctypes.byref(made)) != layout.OK:
                break
        for fields in count():
            name = b"probe %d" % fields
            if connection.status("dcgmFieldGroupCreate", 1, ctypes.byref(field), name, ctypes.byref(made)) != layout.OK:
                break
        return groups, fields


class ChangingNode:
    """The real source, pipeline and rendering, which read a changing engine."""

    def __init__(self, engine: ChangingEngine) -> None:
        counters = load_counters(None).counters
        source = DcgmSource(engine.config(counters), Clocks(wall=engine.now, steady=lambda: engine.elapsed))
        sources = NodeSources(source, ChangingKubelet(engine.uuids))
        self._engine = engine
        self._pipeline = NodePipeline(sources, counters, STYLE, RULES, clock=engine.now)
        self._loop = CollectionLoop(self._pipeline.collect, exporter_metrics(), STEP, clock=lambda: 0.0)
        self._library = DcgmLibrary(str(engine.library))

    def run(self, collections: int) -> Resources:
        """Make so many collections. Returns what is occupied then."""
        for _ in range(collections):
            self._engine.step()
            self._loop.collect()
            assert self._loop.exposition.text_gzip, "nothing to scrape"
        assert b"\nDCGM_FI_PROF_" in self._loop.exposition.text, "the engine's values are missing after the changes"
        return own_resources(*unused_groups(self._library, self._engine.address))

    def close(self) -> None:
        """Close the connection to the engine."""
        self._pipeline.close()


def collect_through_changes(folder: Path, collections: int) -> tuple[Resources, Resources]:
    """Collect in this process. Returns what it occupied after some cycles, and after so many more collections."""
    cycles = max(collections // COLLECTIONS_PER_CYCLE, 1)
    with closing(ChangingEngine(folder)) as engine, closing(ChangingNode(engine)) as node:
        # An engine forgets the groups of a lost connection. So what it has left is compared with what it had before
        # any change, one collection before a cycle ends: when the next one begins, the engine has restarted.
        unchanged = node.run(FIRST_COLLECTIONS)
        warm = node.run(min(WARM_UP_CYCLES, cycles) * COLLECTIONS_PER_CYCLE - FIRST_COLLECTIONS - 2)
        before = replace(warm, groups=unchanged.groups, field_groups=unchanged.field_groups)
        return before, node.run(cycles * COLLECTIONS_PER_CYCLE)


def read_through_kills(folder: Path, kills: int) -> tuple[Resources, Resources]:
    """Read with reader processes that are killed. Returns what this process occupied before the first kill and last."""
    pauses = count(0.0, 3600.0)  # every pause before another start is over at once
    found = []
    with closing(ChangingEngine(folder)) as engine:
        config = engine.config(load_counters(None).counters)
        with closing(Reader(config, clock=pauses.__next__)) as reader:
            for _ in range(kills + 1):
                for _ in range(KILLS_EVERY):
                    _read(reader)
                found.append(own_resources())
                if reader.pid is not None:
                    os.kill(reader.pid, signal.SIGKILL)
    return found[0], found[-1]


def _read(reader: Reader) -> None:
    """Read once; a process that was killed or that still starts is asked again."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            reader.read()
        except SourceError:
            continue
        return
    raise TimeoutError("the reader process does not answer")


def churn_section(collections: int, kills: int) -> BenchSection:
    """Measure both, each in a process of its own."""
    before, after = _measured("collections", collections)
    first, last = _measured("kills", kills)
    rows = [
        Figure(
            f"growth of resident memory over {collections:,} collections",
            after.resident - before.resident,
            "MiB",
            BUDGET_MIB,
            f"from {before.resident:.1f} MiB",
        ),
        *_more("after the collections", before, after),
        *_more(f"after {kills} kills of the reader process", first, last),
    ]
    remark = (
        "A GPU lost and back, one absent, other MIG devices, MIG off, the engine restarted and away, blanks, an XID."
    )
    return BenchSection(f"Changes, in every {COLLECTIONS_PER_CYCLE} collections", rows, [remark])


def _more(when: str, before: Resources, after: Resources) -> Iterator[Figure]:
    """What is in use beyond what was before: none of it may be."""
    for what in ("descriptors", "threads"):
        there = asdict(before)[what]
        yield Figure(f"{when}: more {what}", asdict(after)[what] - there, "", 0.0, f"from {there}")
    if before.groups:
        used = (before.groups - after.groups) + (before.field_groups - after.field_groups)
        yield Figure(f"{when}: more DCGM groups and field groups", used, "", 0.0, f"unused {before.groups}")


def _measured(what: str, number: int) -> tuple[Resources, Resources]:
    command = (sys.executable, "-m", "bench.churn", what, str(number))
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout
    before, after = json.loads(output)
    return Resources(*before), Resources(*after)


def main(arguments: Sequence[str]) -> None:
    """Measure one of both in this process and print it."""
    logging.disable()  # each change is a warning
    run = {"collections": collect_through_changes, "kills": read_through_kills}[arguments[0]]
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps([astuple(each) for each in run(Path(folder), int(arguments[1]))]))


if __name__ == "__main__":
    main(sys.argv[1:])
