"""A stage for each test, taken down after it."""

import pytest

from tests.exporter.node.dcgm.fixture import SONAMES, Stage


@pytest.fixture(params=SONAMES)
def stage_of(request, tmp_path):
    stages = []

    def make(scenario, **more):
        stages.append(Stage(tmp_path, scenario, request.param, **more))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
