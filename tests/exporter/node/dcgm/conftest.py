"""The fixture that makes an engine for a test and then closes it."""

import pytest

from tests.exporter.node.dcgm.fixture import SONAMES, EngineFixture


@pytest.fixture(params=SONAMES)
def engine_of(request, tmp_path):
    """Makes an engine of a scenario: its name, or a document."""
    engines = []

    def make(scenario, **options):
        engines.append(EngineFixture(tmp_path, scenario, request.param, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()
