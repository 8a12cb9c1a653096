"""An embedded engine that keeps GPUs open is watched, so that its process ends when the driver is unbound from one."""

import pytest

from exporter.node.dcgm.clocks import Clocks
from exporter.node.dcgm.source import DcgmSource
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import AT_ITS_SOCKET, document, gpu_spec


class NotedWatch:
    """A watch that notes whether it is closed."""

    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def watches():
    return []


@pytest.fixture
def source_of(engine_of, watches):
    """Opens a source, by default with an embedded engine; the watches that it begins are in `watches`."""

    def start(version, remote=None, events=()):
        engine = engine_of(document(gpu_spec(), events=events, versions={"dcgm": version}))

        def watch():
            watches.append(NotedWatch())
            return watches[-1]

        config = engine.config(150, remote=remote)
        clocks = Clocks(wall=lambda: engine.now, steady=lambda: engine.t)
        engine._sources.append(DcgmSource(config, clocks, watch_driver=watch))
        return engine._sources[-1]

    return start


@pytest.mark.parametrize("version", ["3.3.9", "4.2.3", "4.4.1"])
def test_an_engine_before_4_5_is_watched_until_it_ends(source_of, watches, version):
    source = source_of(version)
    source.read()
    source.read()
    assert [watch.closed for watch in watches] == [False]
    source.close()
    assert [watch.closed for watch in watches] == [True]


@pytest.mark.parametrize("version", ["4.5.0", "4.10.1"])
def test_a_newer_engine_which_lets_go_of_gpus_by_itself_is_not_watched(source_of, watches, version):
    source_of(version).read()
    assert watches == []


def test_a_host_engine_which_has_the_gpus_open_itself_is_not_watched(source_of, watches):
    source_of("4.2.3", remote=AT_ITS_SOCKET).read()
    assert watches == []


def test_the_watch_of_an_engine_that_cannot_start_ends(source_of, watches):
    source = source_of("4.2.3", events=[{"event": "call", "function": "dcgmStartEmbedded", "status": -3}])
    with pytest.raises(SourceError):
        source.read()
    assert [watch.closed for watch in watches] == [True]
