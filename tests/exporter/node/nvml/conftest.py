"""The compiled libnvidia-ml.so.1 in place of the driver's own, for every test of this process that asks pynvml."""

import ctypes

import pynvml
import pytest

from exporter.node.nvml.source import NvmlSource
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import Clock, config
from tests.fakes.build import build
from tests.fakes.scenario_table import VARIABLE, Player


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("nvml")
    loaded = ctypes.CDLL(str(build(directory, only="libnvidia-ml")["libnvidia-ml.so.1"]))
    pynvml.nvmlLib = loaded  # where a test before has loaded the real one, its name no longer leads to ours
    return loaded


@pytest.fixture
def play(library, tmp_path, monkeypatch):
    """Play a scenario, or a built-in one by name; the table shows its beginning."""

    def start(scenario):
        scenario = scenario if isinstance(scenario, Scenario) else load(scenario)
        player = Player(scenario, tmp_path / "table")
        monkeypatch.setenv(VARIABLE, str(player.path))
        player.tick(0)
        return player

    return start


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_source(clock):
    """A source over these fields (default: every one) that does not wait for second samples."""
    opened = []

    def start(*ids, **options):
        source = NvmlSource(config(ids) if ids else config(), **{"clock": clock, "patience": 0.0} | options)
        opened.append(source)
        return source

    yield start
    for source in opened:
        source.close()
