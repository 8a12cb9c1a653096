"""Public consumers of dcgm-exporter's metrics on a real Prometheus: every query that it answers is answered here too.

`queries.json` has dashboards, rules, autoscalers, cost and monitoring tools, with their queries in compact form. Each
is asked at a time at which this Prometheus has the history of that consumer alone: as it would be with the consumer's
own counters file, `--hostname-label both` and the flags that it needs. Queries of pods are asked as their users
scrape: with `honor_labels: true`, and with `false` where they name `exported_pod`.
"""

import json
import time

import pytest

from exporter.node.devices.counters.counters_file import parse as parse_counters
from tests.consumers.history import MOMENTS, NODES, at_time, consumers, pages
from tests.dashboards.prometheus import eventually, query, running, serving
from tests.exporter.node.scenario_flow import SimulatedFlow

APART = 3600
"""Seconds between the histories of two consumers: more than any query looks back."""
UNTIL = 65
"""Seconds from the beginning of a history to the moment of the queries."""
OF_THE_EXPORTER = {"cluster": "c1", "namespace": "monitoring", "pod": "gpu-exporter", "container": "exporter"}
"""Labels that service discovery gives the target."""


def settings(jobs, address):
    """Scrape each page once a second. `jobs`: whether labels of the page win, by (path, node)."""
    scrapes = [
        {
            "job_name": path.strip("/"),
            "metrics_path": path,
            "honor_labels": honor,
            "static_configs": [{"targets": [address], "labels": {**OF_THE_EXPORTER, "instance": f"{node}:9400"}}],
        }
        for (path, node), honor in jobs.items()
    ]
    # The histories lie hours back, one before the other.
    storage = {"tsdb": {"out_of_order_time_window": "7d"}}
    return json.dumps({"global": {"scrape_interval": "1s"}, "storage": storage, "scrape_configs": scrapes})


class Histories:
    """The pages that Prometheus scrapes, and when each consumer asks."""

    def __init__(self, folder):
        self.pages, self.jobs, self.asked = {}, {}, []
        begin = int(time.time()) - APART
        for number, consumer in enumerate(consumers()):
            own = folder / str(number)
            own.mkdir()
            texts = pages(consumer, own)
            for honor in (True, False):
                queries = [each for each in consumer.queries if ("exported_" not in each) == honor]
                if queries:
                    begin -= APART
                    self._add(f"{number}-{honor}", texts, honor, begin)
                    self.asked += [(consumer.name, each, begin + UNTIL) for each in queries]

    def _add(self, name, texts, honor, begin):
        for node in NODES:
            self.pages[f"/{name}/{node}"] = at_time(texts[node], begin)
            self.jobs[f"/{name}/{node}", node] = honor


def test_a_type_is_that_of_the_counters_file_also_where_it_is_a_rate():
    """Monitoring agents name a metric by its type: `dcgm.nvlink_bandwidth.count`."""
    name = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
    flow = SimulatedFlow("whole", parse_counters(f"{name}, counter, x", "its-counters.csv"))
    assert f"# TYPE {name} counter\n" in flow.exposition(MOMENTS[0]).text.decode()


@pytest.mark.prometheus
@pytest.mark.slow
def test_every_query_that_dcgm_exporter_answers_returns_data(tmp_path):
    made = Histories(tmp_path)
    with serving(made.pages) as address, running(tmp_path / "prometheus", settings(made.jobs, address)) as base:
        eventually(lambda: len(query(base, "query", query="up == 1")) == len(made.jobs), "every page is scraped")
        found = [(name, text, query(base, "query", query=text, time=str(at))) for name, text, at in made.asked]
    empty = [(name, text) for name, text, series in found if not series]
    assert empty == []
    assert len(found) > 250
