"""The fixture that makes a client of the fake libdcgm for a test, and closes it."""

import ctypes

import pytest

from tests.fakes.build import build
from tests.fakes.dcgm_client import Engine
from tests.fakes.scenario_table import VARIABLE


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The compiled libraries of both major versions, by soname."""
    return build(tmp_path_factory.mktemp("libraries"), only="libdcgm")


@pytest.fixture
def start(libraries, tmp_path, monkeypatch):
    """Makes an engine of a scenario document, and a client of it."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "table"))
    started = []

    def engine(document, major=4):
        started.append(Engine(ctypes.CDLL(str(libraries[f"libdcgm.so.{major}"])), tmp_path, document))
        return started[-1]

    yield engine
    for each in started:
        each.lib.dcgmShutdown()
        each.close()
