"""Fields with an interval of their own are watched at it by a watch of their own, and exposed with the others."""

import msgspec
import pytest

from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.native.library import DcgmLibrary
from exporter.node.dcgm.source import DcgmSource
from tests.exporter.node.dcgm.fixture import document, gpu_spec, samples, uuid_of


class IntervalLibrary(DcgmLibrary):
    """libdcgm that records the intervals that are asked for, in microseconds."""

    def __init__(self, path):
        self.intervals = []
        super().__init__(path)

    def status(self, function, *arguments):
        if function == "dcgmWatchFields":
            self.intervals.append(arguments[3])
        return super().status(function, *arguments)


def at_intervals(fields, seconds):
    return tuple(msgspec.structs.replace(field, interval=seconds.get(field.id)) for field in fields)


@pytest.fixture
def engine_source_and_library(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1)))
    config = engine.config(150, 155, 203, 1004)
    config = msgspec.structs.replace(config, fields=at_intervals(config.fields, {155: 600.0, 203: 600.0, 1004: 10.0}))
    libraries = []

    def load(path):
        libraries.append(IntervalLibrary(path))
        return libraries[-1]

    source = DcgmSource(config, Clocks(wall=lambda: engine.now, steady=lambda: engine.t), load)
    source.read()
    yield engine, source, libraries[-1]
    source.close()


def test_each_interval_has_a_watch_of_its_own(engine_source_and_library):
    engine, source, library = engine_source_and_library
    assert sorted(library.intervals) == [1_000_000, 10_000_000, 600_000_000]
    engine.at(11.0)
    found = {field for uuid, _, _, field in samples(source.read()) if uuid == uuid_of(0)}
    assert found == {150, 155, 203, 1004}


def test_a_field_that_gets_another_interval_is_watched_anew_and_the_others_are_not(engine_source_and_library):
    _, source, library = engine_source_and_library
    library.intervals.clear()
    source.want(at_intervals(source._config.fields, {203: 60.0, 155: 600.0, 1004: 10.0}))
    source.read()
    assert 60_000_000 in library.intervals
    assert 1_000_000 not in library.intervals
