"""Measures the CPU of one collection (one round of reading every source and rendering), stage by stage.

The reader process, which calls the native library, and the parent process, which does the rest, have their own stages.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc
import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from bench.cpu import Cost, cost, cost_of, process_ms
from bench.fixture import START_SECONDS, BenchNode, RunningFakes, last_series
from bench.table import BenchSection, Figure
from exporter.collection_loop import CollectionLoop
from exporter.exposition.exporter_metrics import ConfigState, ExporterMetrics
from exporter.exposition.page import gzip_page, plain_page
from exporter.exposition.render import formatted_samples
from exporter.node.attribution.kubelet.client import Kubelet
from exporter.node.attribution.kubelet_api.podresources_pb2 import ListPodResourcesRequest
from exporter.node.attribution.kubelet_api.podresources_pb2_grpc import PodResourcesListerStub
from exporter.node.attribution.matching.rules import AttributionRules
from exporter.node.attribution.series.metrics import AttributionCache
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.counters.counters_file import Counters
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.readings.readings import Readings
from exporter.node.devices.series.labels import LabelStyle
from exporter.node.pipeline import NodePipeline, NodeSources
from exporter.node.reader.protocol import ReaderReply
from exporter.node.reader.supervisor import Reader

LIBRARY = "reader: library call (fake library, C) *"
LIST = "parent: kubelet List (gRPC's C core, all its threads) *"
COMPRESS = "parent: compress (gzip, text format, C) *"
EXPORTER_METRICS = "parent: exporter metrics (prometheus_client) *"
EXEMPT = (LIBRARY, LIST, COMPRESS, EXPORTER_METRICS)
"""Stages that do not count toward the budget of our own Python code: C code, and the exporter metrics.

`prometheus_client` writes the exporter metrics with its own generate functions (ADR 0005); their cost does not grow
with the number of devices.
"""
SWEEPS = 4
"""How often all stages are measured one after another; the least of each stage is taken."""
STYLE = LabelStyle("node-1")
RULES = AttributionRules()


@dataclass(slots=True)
class FixedSource:
    """A source whose readings are set."""

    readings: Readings
    name: str = "dcgm"

    def read(self) -> Readings:
        """Return the readings that are set."""
        return self.readings

    def close(self) -> None:
        """Do nothing."""


class TimedLibrary(DcgmLibrary):
    """libdcgm with a clock around each call; `spent` is the time of all calls in nanoseconds."""

    spent = 0

    def status(self, function: str, *arguments: object) -> int:
        """Call a function and add its time."""
        began = time.perf_counter_ns()  # reading the clock of CPU time costs far more
        try:
            return super().status(function, *arguments)
        finally:
            self.spent += time.perf_counter_ns() - began


@dataclass(slots=True)
class ReaderStages:
    """The work of a reader process, done in this process, where its stages can be measured one by one."""

    library: Cost
    decode: Cost
    encode: Cost
    readings: Readings = field(repr=False)
    body: bytes = field(repr=False)


def reader_stages(config: ReaderConfig, repetitions: int) -> ReaderStages:
    """Measure what a reader process does for one reply."""
    libraries: list[TimedLibrary] = []

    def load(path: str | None) -> DcgmLibrary:
        libraries.append(TimedLibrary(path or ""))
        return libraries[0]

    source = DcgmSource(config, load=load)
    end = time.monotonic() + START_SECONDS
    while not _has_activity(source.read(), config):  # the engine has it one interval after the first read
        assert time.monotonic() < end, "the engine has no engine activity"
        time.sleep(0.05)
    calls, reads = [], []
    for _ in range(repetitions):
        libraries[0].spent, began = 0, time.thread_time_ns()
        source.read()
        reads.append((time.thread_time_ns() - began) / 1e6)
        calls.append(libraries[0].spent / 1e6)
    reply = ReaderReply(1, source.read())
    source.close()
    assert reply.readings is not None
    library = cost(calls)
    encode = msgspec.msgpack.Encoder().encode
    return ReaderStages(
        library, minus(cost(reads), library), cost_of(lambda: encode(reply), repetitions), reply.readings, encode(reply)
    )


def _has_activity(readings: Readings, config: ReaderConfig) -> bool:
    activity = {field.id for field in config.fields if field.watch == "profiling"}
    columns = [
        column
        for batch in readings.batches
        for number, column in zip(batch.fields, batch.columns, strict=True)
        if number in activity
    ]
    return not activity or any(value is not None for column in columns for value in column)


@dataclass(slots=True)
class ParentStages:
    """The stages of the parent process for one reply of the reader process, each measured alone."""

    counters: Counters
    fakes: RunningFakes
    reader: ReaderStages
    repetitions: int

    def costs(self) -> dict[str, Cost]:
        """Measure each stage."""
        decode = msgspec.msgpack.Decoder(ReaderReply).decode
        decoding = self._cost(lambda: decode(self.reader.body))
        return {"parent: decode message": decoding, **self._attribution(decode, decoding), **self._rendering()}

    def _cost(self, run: Callable[[], object]) -> Cost:
        return cost_of(run, self.repetitions)

    def _attribution(self, decode: Callable[[bytes], ReaderReply], decoding: Cost) -> dict[str, Cost]:
        """Measure with a reply decoded again each time, as in each collection: equal, but not the same objects."""
        kubelet = Kubelet(self.fakes.socket)
        allocations = kubelet.read()
        reading, listing = self._listing(kubelet)
        kubelet.close()
        cache = AttributionCache(STYLE.hostname, RULES)
        source = FixedSource(self.reader.readings)
        pipeline = NodePipeline(NodeSources(source, None), self.counters, STYLE, RULES)

        def fresh() -> Readings:
            readings = decode(self.reader.body).readings
            assert readings is not None
            source.readings = readings
            return readings

        attribution = self._cost(lambda: cache.get(fresh().inventory, allocations))
        families = self._cost(lambda: (fresh(), pipeline.collect()))
        return {
            LIST: listing,
            "parent: parse the kubelet's response": minus(reading, listing),
            "parent: attribute": minus(attribution, decoding),
            "parent: families": minus(families, decoding),
        }

    def _listing(self, kubelet: Kubelet) -> tuple[Cost, Cost]:
        """Measure a read of the kubelet and the bare gRPC call in it, both with the threads of gRPC."""
        channel = grpc.insecure_channel(f"unix:{self.fakes.socket}")
        call = PodResourcesListerStub(channel).List  # type: ignore[no-untyped-call] # generated
        request = ListPodResourcesRequest()
        reading = cost_of(kubelet.read, self.repetitions, time.process_time_ns)
        bare = cost_of(lambda: call(request, timeout=5), self.repetitions, time.process_time_ns)
        channel.close()
        return reading, bare

    def _rendering(self) -> dict[str, Cost]:
        pipeline = NodePipeline(NodeSources(FixedSource(self.reader.readings), None), self.counters, STYLE, RULES)
        metrics, empty = exporter_metrics(), CollectorRegistry()
        snapshot = pipeline.collect()
        metrics.observe(snapshot)
        registry = metrics.registry()
        text = formatted_samples(snapshot.families, registry).text()
        return {
            "parent: render families (text format)": self._cost(
                lambda: plain_page(formatted_samples(snapshot.families, empty).text())
            ),
            EXPORTER_METRICS: self._cost(lambda: generate_latest(registry)),
            COMPRESS: self._cost(lambda: gzip_page(text)),
        }


def minus(one: Cost, other: Cost) -> Cost:
    """Subtract a part that was measured alone."""
    return Cost(max(one.least - other.least, 0.0), max(one.median - other.median, 0.0))


def exporter_metrics() -> ExporterMetrics:
    """Make the exporter metrics of a node exporter."""
    state = ConfigState("0" * 64, successful=True, at=time.time())
    return ExporterMetrics({"node": STYLE.hostname}, config=lambda: state)


@dataclass(frozen=True, slots=True)
class WholeCollection:
    """CPU of collections with a real reader process and a real gRPC kubelet."""

    reader: Cost
    """Of one read, in the reader process."""
    parent: Cost
    """Of one read, in the parent process."""
    total: Cost
    """Of one collection, in both processes."""


def whole(counters: Counters, fakes: RunningFakes, repetitions: int) -> WholeCollection:
    """Measure whole collections, without the pauses between them, while a Prometheus scrapes: text format, gzip."""
    reader = Reader(fakes.reader_config(counters))
    pipeline = NodePipeline(NodeSources(reader, Kubelet(fakes.socket)), counters, STYLE, RULES)
    loop = CollectionLoop(pipeline.collect, exporter_metrics(), 10.0)
    end = time.monotonic() + START_SECONDS
    while last_series(" ".join(row.name for row in counters.rows)) not in loop.exposition.text:
        assert time.monotonic() < end, "the reader process does not answer"
        time.sleep(0.05)
        loop.collect()
    try:
        read_there, read_here = _both(reader, reader.read, repetitions)
        assert loop.exposition.text_gzip, "nothing to scrape"  # from now on each collection makes what was asked for
        collect_there, collect_here = _both(reader, loop.collect, repetitions)
        totals = [there + here for there, here in zip(collect_there, collect_here, strict=True)]
        return WholeCollection(cost(read_there), cost(read_here), cost(totals))
    finally:
        pipeline.close()


def _both(reader: Reader, run: Callable[[], object], repetitions: int) -> tuple[list[float], list[float]]:
    """Measure so many runs. Returns milliseconds of CPU of the reader process and of this process, of each run."""
    there, here = [], []
    for _ in range(repetitions):
        assert reader.pid is not None
        before, began = process_ms(reader.pid), time.process_time_ns()
        run()
        here.append((time.process_time_ns() - began) / 1e6)
        there.append(process_ms(reader.pid) - before)
    return there, here


def stage_section(
    node: BenchNode, fakes: RunningFakes, budget: float, repetitions: int
) -> tuple[BenchSection, Readings]:
    """Measure every stage, their sum against the budget (milliseconds), and whole collections.

    Returns the readings of the node, too.
    """
    counters = node.counters()
    swept = [reader_stages(fakes.reader_config(counters), repetitions // SWEEPS) for _ in range(SWEEPS)]
    reader = min(swept, key=lambda stages: stages.decode.least)
    collections = whole(counters, fakes, repetitions)
    measured = (reader.library, reader.decode, reader.encode)
    inside = Cost(sum(each.least for each in measured), sum(each.median for each in measured))
    parent = least([ParentStages(counters, fakes, reader, repetitions // SWEEPS).costs() for _ in range(SWEEPS)])
    stages = {
        LIBRARY: reader.library,
        "reader: decode records": reader.decode,
        "reader: encode message": reader.encode,
        "reader: its loop and pipe": minus(collections.reader, inside),
        "parent: request and receive": minus(collections.parent, parent["parent: decode message"]),
        **parent,
    }
    python = sum(c.least for name, c in stages.items() if name not in EXEMPT)
    rows = [Figure(name, c.least, "ms", note=c.note) for name, c in stages.items()]
    rows.append(Figure("our Python code in one collection: all stages without *", python, "ms", budget))
    rows.append(Figure("our Python code and the kubelet List", python + stages[LIST].least, "ms"))
    rows.append(Figure("whole collection, both processes", collections.total.least, "ms", note=collections.total.note))
    samples = sum(len(column) for batch in reader.readings.batches for column in batch.columns)
    remarks = (
        f"{samples} samples. Least CPU time of {repetitions} runs; the median beside it shows how disturbed they were.",
        "* exempt: C code, and exporter metrics, whose cost does not depend on the number of devices (ADR 0005).",
    )
    return BenchSection(f"One collection: {node.name}", rows, remarks), reader.readings


def least(sweeps: list[dict[str, Cost]]) -> dict[str, Cost]:
    """Take the least cost of each stage: a busy moment of the machine affects one whole stage of one sweep."""
    return {name: min((sweep[name] for sweep in sweeps), key=lambda each: each.least) for name in sweeps[0]}
