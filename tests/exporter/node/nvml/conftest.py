"""The compiled fake libnvidia-ml.so.1 in place of the driver's own, for every test of this process that uses pynvml."""

import ctypes

import pynvml
import pytest

from exporter.node.nvml.source import NvmlSource
from exporter.node.simulation.scenario import Scenario, load
from tests.clock import Clock
from tests.exporter.node.nvml.fixture import config
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, ScenarioTable
from tests.waiting import until


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("nvml")
    loaded = ctypes.CDLL(str(build(directory, only="libnvidia-ml")["libnvidia-ml.so.1"]))
    pynvml.nvmlLib = (
        loaded  # where an earlier test has loaded the real library, the loader no longer finds ours by name
    )
    return loaded


@pytest.fixture
def scenario_table(library, tmp_path, monkeypatch):
    """Give the fake library a scenario, or a built-in one by name, at its beginning. `tick` moves it on."""

    def start(scenario):
        scenario = scenario if isinstance(scenario, Scenario) else load(scenario)
        table = ScenarioTable(scenario, tmp_path / "table")
        monkeypatch.setenv(VARIABLE, str(table.path))
        table.tick(0)
        return table

    return start


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_source(clock):
    """Open a source over these fields (default: every one) that does not wait for second samples."""
    opened = []

    def start(*ids, **options):
        source = NvmlSource(config(ids) if ids else config(), **{"clock": clock, "patience": 0.0} | options)
        opened.append(source)
        return source

    yield start
    for source in opened:
        until(lambda source=source: not source._calls.unreturned())  # the library is shut down only then
        source.close()
