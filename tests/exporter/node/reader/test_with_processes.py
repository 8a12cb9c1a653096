"""Processes beside a source that reads DCGM: what fails or hangs there costs the processes alone."""

import msgspec
import pytest

from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.node.devices.readings.processes import GpuProcess, GpuProcesses, ProcessReadings
from exporter.node.devices.readings.readings import Readings
from exporter.node.reader.sources import open_source
from exporter.node.reader.with_processes import WithProcesses
from exporter.source import SourceError

LISTED = ProcessReadings((GpuProcesses("GPU-1", (GpuProcess(7, memory=5),)),))


class Answering:
    """A source that returns one answer or raises it."""

    choice = None

    def __init__(self, name, answer):
        self.name, self.answer, self.wanted, self.closed = name, answer, None, False

    def read(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def want(self, fields):
        self.wanted = fields

    def close(self):
        self.closed = True


def engine(**more):
    return Answering("dcgm", Readings("dcgm", 1.0, (), **more))


def nvml(processes=LISTED):
    return Answering("nvml", Readings("nvml", 1.0, (), processes=processes))


def at_once(function):
    function()


def test_the_processes_are_those_that_nvml_lists():
    source = WithProcesses(engine(), nvml(), 10.0, at_once)
    readings = source.read()
    assert (source.name, readings.source, readings.processes) == ("dcgm", "dcgm", LISTED)


def test_a_source_that_lists_processes_itself_is_enough():
    own = ProcessReadings()
    readings = WithProcesses(engine(processes=own), nvml(), 10.0, at_once).read()
    assert readings.processes is own


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(SourceError("library_missing", "libnvidia-ml.so.1"), "nvml_missing"), (ValueError("a defect"), "failed")],
)
def test_a_failure_of_nvml_costs_the_processes_alone(failure, reason):
    readings = WithProcesses(engine(), Answering("nvml", failure), 10.0, at_once).read()
    assert readings.source == "dcgm"
    assert readings.processes.gpus == ()
    assert readings.processes.problem[0] == reason
    assert str(failure) in readings.processes.problem[1]


def test_while_nvml_hangs_the_engine_is_read_and_nvml_is_asked_once():
    started = []
    source = WithProcesses(engine(), nvml(), 0.01, started.append)
    for _ in range(3):
        assert source.read().processes.problem[0] == "nvml_slow"
    assert len(started) == 1
    started.pop()()  # it returns after all: what it read is old by now
    source._start = at_once
    assert source.read().processes == LISTED


def test_a_failure_of_the_engine_is_that_of_the_source():
    with pytest.raises(SourceError):
        WithProcesses(Answering("dcgm", SourceError("refused", "")), nvml(), 10.0, at_once).read()


def test_fields_are_for_the_engine_and_both_are_closed_but_nvml_not_in_a_call():
    inner, beside, started = engine(), nvml(), []
    source = WithProcesses(inner, beside, 0.01, started.append)
    source.want(("field",))
    assert (inner.wanted, beside.wanted) == (("field",), None)
    source.read()
    source.close()
    assert (inner.closed, beside.closed) == (True, False)
    started[0]()
    source.close()
    assert beside.closed


@pytest.mark.parametrize(
    ("name", "wanted", "wrapped"),
    [("dcgm", True, True), ("auto", True, True), ("nvml", True, False), ("dcgm", False, False)],
)
def test_nvml_is_read_beside_a_source_that_may_be_an_engine(name, wanted, wrapped):
    config = ReaderConfig(name, (), 10.0, processes=wanted)
    assert isinstance(open_source(config, lambda xids: None), WithProcesses) == wrapped
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(config), type=ReaderConfig) == config


def test_processes_go_through_the_pipe_as_they_are():
    readings = Readings("nvml", 1.0, (), processes=LISTED)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(readings), type=Readings) == readings
