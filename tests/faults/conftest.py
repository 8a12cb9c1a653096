"""The node exporters of fault tests."""

from contextlib import ExitStack

import pytest

from tests.exporter.node.exporter_process import RESPONSE_SECONDS, running_exporter


@pytest.fixture
def exporter(tmp_path):
    """Starts an exporter, which ends with the test; none of its responses may have been slow, failed or wrong."""
    with ExitStack() as running:
        started = []

        def start(*arguments, **more):
            started.append(running.enter_context(running_exporter(tmp_path, *arguments, **more)))
            return started[-1]

        yield start
    for one in started:
        assert one.scraper.faults == []
        assert one.scraper.slowest < RESPONSE_SECONDS
