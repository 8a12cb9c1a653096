"""What a real Prometheus knows of the metrics that it scraped from the real server."""

import json
import urllib.request
from urllib.parse import urlencode

import pytest

from tests.dashboards.prometheus import eventually, scraping
from tests.exporter.node.scenario_flow import SimulatedFlow, default_counters
from tests.fakes.endpoints import FixedEndpoints, serving

COUNTER = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
"""It has no suffix `_total`, which OpenMetrics demands of a counter."""


def kinds(base, name):
    """The types of a metric in Prometheus' metadata; none before the first scrape."""
    with urllib.request.urlopen(f"{base}/api/v1/metadata?{urlencode({'metric': name})}", timeout=60) as answer:
        return [each["type"] for each in json.load(answer)["data"].get(name, ())]


@pytest.mark.prometheus
def test_prometheus_knows_a_counter_with_a_dcgm_name_as_a_counter(tmp_path):
    endpoints = FixedEndpoints(SimulatedFlow("whole", default_counters(), 61).exposition())
    with (
        serving(endpoints) as server,
        scraping(tmp_path, {"/metrics": {"job": "gpugauge"}}, f"127.0.0.1:{server.port}", {}) as base,
    ):
        eventually(lambda: bool(kinds(base, COUNTER)), "Prometheus has scraped")
        assert kinds(base, COUNTER) == ["counter"]
        assert kinds(base, "DCGM_FI_DEV_POWER_USAGE") == ["gauge"]
