"""CPU of one pass, stage by stage: the reader child's part and the parent's, over real parts."""

import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc
import msgspec
from prometheus_client import CollectorRegistry

from bench.cpu import Cost, cost, cost_of, process_ms
from bench.fixture import SECONDS_TO_START, Place, Scene
from bench.table import Row, Section
from exporter.client_page import client_page
from exporter.collection_loop import Sampler
from exporter.exposition.exporter_metrics import ConfigState, SelfMetrics
from exporter.exposition.render import GZIP_LEVEL, written
from exporter.node.attribution.attribute import AttributionRules
from exporter.node.attribution.kubelet import Kubelet
from exporter.node.attribution.kubelet_api.podresources_pb2 import ListPodResourcesRequest
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from exporter.node.attribution.metrics import AllocationView
from exporter.node.dcgm.library import Library
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.counters_file import Counters
from exporter.node.devices.labels import LabelStyle
from exporter.node.devices.readings import ReaderConfig, Readings
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.reader.protocol import Answer
from exporter.node.reader.supervisor import Reader

LIBRARY = "reader: library call (stand-in, C)"
LIST = "parent: kubelet List (gRPC's C core, all its threads)"
COMPRESS = "parent: compress (gzip, both formats, C)"
NOT_PYTHON = (LIBRARY, LIST, COMPRESS)
SWEEPS = 4
STYLE = LabelStyle("node-1")
RULES = AttributionRules()


@dataclass(slots=True)
class Given:
    """A source that gives what it was told."""

    answer: Readings
    name: str = "dcgm"

    def read(self) -> Readings:
        return self.answer

    def close(self) -> None:
        """Holds nothing."""


class TimedLibrary(Library):
    """libdcgm with a clock around each call; `spent` is in nanoseconds."""

    spent = 0

    def status(self, function: str, *arguments: object) -> int:
        began = time.perf_counter_ns()  # unlike the clock of CPU time it costs next to nothing
        try:
            return super().status(function, *arguments)
        finally:
            self.spent += time.perf_counter_ns() - began


@dataclass(slots=True)
class ReaderStages:
    """The reader's work in this process, where its parts can be told apart."""

    library: Cost
    decode: Cost
    encode: Cost
    readings: Readings = field(repr=False)
    body: bytes = field(repr=False)


def reader_stages(config: ReaderConfig, rounds: int) -> ReaderStages:
    """What a reader child does for one answer."""
    libraries: list[TimedLibrary] = []

    def load(path: str | None) -> Library:
        libraries.append(TimedLibrary(path or ""))
        return libraries[0]

    source = DcgmSource(config, load=load)
    source.read()
    inside, both = [], []
    for _ in range(rounds):
        libraries[0].spent, began = 0, time.thread_time_ns()
        source.read()
        both.append((time.thread_time_ns() - began) / 1e6)
        inside.append(libraries[0].spent / 1e6)
    answer = Answer(1, source.read())
    source.close()
    assert answer.readings is not None
    library = cost(inside)
    encode = msgspec.msgpack.Encoder().encode
    return ReaderStages(
        library, minus(cost(both), library), cost_of(lambda: encode(answer), rounds), answer.readings, encode(answer)
    )


@dataclass(slots=True)
class Parent:
    """The parent's parts over one answer of the reader, each for itself."""

    counters: Counters
    place: Place
    read: ReaderStages
    rounds: int

    def costs(self) -> dict[str, Cost]:
        """What each costs."""
        decode = msgspec.msgpack.Decoder(Answer).decode
        decoding = self._cost(lambda: decode(self.read.body))
        return {"parent: decode message": decoding, **self._flow(decode, decoding), **self._page()}

    def _cost(self, run: Callable[[], object]) -> Cost:
        return cost_of(run, self.rounds)

    def _flow(self, decode: Callable[[bytes], Answer], decoding: Cost) -> dict[str, Cost]:
        """With an answer decoded anew, as each pass gets it: equal to the last, not the same objects."""
        kubelet = Kubelet(self.place.socket)
        allocations = kubelet.read()
        reading, listing = self._listing(kubelet)
        kubelet.close()
        view = AllocationView(STYLE.hostname, RULES)
        given = Given(self.read.readings)
        pipeline = NodePipeline(NodeSources(given, None), self.counters, STYLE, RULES)

        def fresh() -> Readings:
            readings = decode(self.read.body).readings
            assert readings is not None
            given.answer = readings
            return readings

        attribution = self._cost(lambda: view.of(fresh().inventory, allocations))
        families = self._cost(lambda: (fresh(), pipeline.take()))
        return {
            LIST: listing,
            "parent: parse the kubelet's answer": minus(reading, listing),
            "parent: attribute": minus(attribution, decoding),
            "parent: families": minus(families, decoding),
        }

    def _listing(self, kubelet: Kubelet) -> tuple[Cost, Cost]:
        """A read of the kubelet, and of that the bare call, with the threads that gRPC has for itself."""
        channel = grpc.insecure_channel(f"unix:{self.place.socket}")
        call = PodResourcesListerStub(channel).List  # type: ignore[no-untyped-call] # generated
        request = ListPodResourcesRequest()
        reading = cost_of(kubelet.read, self.rounds, time.process_time_ns)
        bare = cost_of(lambda: call(request, timeout=5), self.rounds, time.process_time_ns)
        channel.close()
        return reading, bare

    def _page(self) -> dict[str, Cost]:
        pipeline = NodePipeline(NodeSources(Given(self.read.readings), None), self.counters, STYLE, RULES)
        own, nothing = own_metrics(), CollectorRegistry()
        snapshot = pipeline.take()
        own.observe(snapshot)
        registry = own.registry()
        bodies = written(snapshot.families, registry)[:2]
        compress = self._cost(lambda: [gzip.compress(body, GZIP_LEVEL, mtime=0) for body in bodies])
        return {
            "parent: render text": self._cost(lambda: written(snapshot.families, nothing)),
            "parent: own metrics": self._cost(lambda: client_page(registry)),
            COMPRESS: compress,
        }


def minus(one: Cost, other: Cost) -> Cost:
    """A cost without a part of it that was measured alone."""
    return Cost(max(one.least - other.least, 0.0), max(one.middle - other.middle, 0.0))


def own_metrics() -> SelfMetrics:
    """As the node exporter makes them."""
    state = ConfigState("0" * 64, successful=True, at=time.time())
    return SelfMetrics({"hostname": STYLE.hostname}, config=lambda: state)


@dataclass(frozen=True, slots=True)
class Whole:
    """The flow over a real reader child and a real gRPC kubelet; CPU of a read on both sides, and of a pass."""

    child: Cost
    ask: Cost
    total: Cost


def whole(counters: Counters, place: Place, rounds: int) -> Whole:
    """Whole passes as the sampler takes them, without its pauses."""
    reader = Reader(place.reader_config(counters))
    pipeline = NodePipeline(NodeSources(reader, Kubelet(place.socket)), counters, STYLE, RULES)
    sampler = Sampler(pipeline.take, own_metrics(), 10.0)
    end = time.monotonic() + SECONDS_TO_START
    while b"\nDCGM_FI_" not in sampler.page.text:
        assert time.monotonic() < end, "the reader child does not answer"
        time.sleep(0.05)
        sampler.sample()
    try:
        child, ask = _both(reader, reader.read, rounds)
        of_child, of_parent = _both(reader, sampler.sample, rounds)
        return Whole(cost(child), cost(ask), cost([a + b for a, b in zip(of_child, of_parent, strict=True)]))
    finally:
        pipeline.close()


def _both(reader: Reader, run: Callable[[], object], rounds: int) -> tuple[list[float], list[float]]:
    """CPU in milliseconds of each of so many rounds: of the child, and of this process."""
    child, parent = [], []
    for _ in range(rounds):
        assert reader.pid is not None
        before, began = process_ms(reader.pid), time.process_time_ns()
        run()
        parent.append((time.process_time_ns() - began) / 1e6)
        child.append(process_ms(reader.pid) - before)
    return child, parent


def stage_section(scene: Scene, place: Place, budget: float, rounds: int) -> tuple[Section, Readings]:
    """Every stage of a pass, their sum against the budget, and a whole pass; with the readings of the scene."""
    counters = scene.counters()
    swept = [reader_stages(place.reader_config(counters), rounds // SWEEPS) for _ in range(SWEEPS)]
    read = min(swept, key=lambda stages: stages.decode.least)
    passes = whole(counters, place, rounds)
    inside = Cost(
        *(sum(parts) for parts in zip(*(_pair(c) for c in (read.library, read.decode, read.encode)), strict=True))
    )
    parent = least([Parent(counters, place, read, rounds // SWEEPS).costs() for _ in range(SWEEPS)])
    stages = {
        LIBRARY: read.library,
        "reader: decode records": read.decode,
        "reader: encode message": read.encode,
        "reader: its loop and pipe": minus(passes.child, inside),
        "parent: ask and listen": minus(passes.ask, parent["parent: decode message"]),
        **parent,
    }
    python = sum(c.least for name, c in stages.items() if name not in NOT_PYTHON)
    rows = [Row(name, c.least, "ms", note=c.note) for name, c in stages.items()]
    rows.append(Row("Python part of one pass: all but what is marked C", python, "ms", budget))
    rows.append(Row("Python part and the kubelet List", python + stages[LIST].least, "ms"))
    rows.append(Row("whole pass, both processes, stages in turn", passes.total.least, "ms", note=passes.total.note))
    cells = sum(len(column) for block in read.readings.blocks for column in block.columns)
    remarks = (
        f"{cells} cells. Least of {rounds} rounds, in CPU time; the median beside it tells how disturbed they were.",
    )
    return Section(f"One pass: {scene.name}", rows, remarks), read.readings


def least(sweeps: list[dict[str, Cost]]) -> dict[str, Cost]:
    """The least of each stage: what disturbs the machine lasts for seconds, and so for a whole stage of one sweep."""
    return {name: min((sweep[name] for sweep in sweeps), key=lambda each: each.least) for name in sweeps[0]}


def _pair(one: Cost) -> tuple[float, float]:
    return one.least, one.middle
