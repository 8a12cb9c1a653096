"""The relabeling keeps what rules and dashboards read, drops gpugauge's other series, and touches no others."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from alerts import ADAPTERS, GROUPS
from scripts.kept_series import GENERATED, kept, relabeling
from tests.dashboards.prometheus import query, running
from tests.promql import selectors
from tests.waiting import until


def test_every_series_that_a_rule_reads_is_kept():
    read = {
        name
        for group in GROUPS
        for rule in group.rules
        if group not in ADAPTERS
        for name, _ in selectors(rule.expr)
        if name.startswith("gpugauge_")
    }
    assert read <= set(kept())


def test_what_nothing_reads_is_left_out():
    assert "gpugauge_scheduler_messages_unknown" not in kept()
    assert not [name for name in kept() if name.startswith("DCGM_")]


def test_the_committed_file_is_current():
    assert (GENERATED / "remote-write.yaml").read_text() == relabeling()


EXPOSITION = b"""\
gpugauge_device_info{UUID="GPU-1"} 1
gpugauge_scheduler_messages_unknown 1
DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1"} 40
node_load1 2
"""


@pytest.fixture
def target():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(EXPOSITION)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.prometheus
def test_prometheus_drops_by_it_what_nothing_reads_and_keeps_series_of_others(target, tmp_path):
    scrape = {
        "job_name": "gpugauge-node",
        "scrape_interval": "1s",
        "static_configs": [{"targets": [target]}],
        "metric_relabel_configs": yaml.safe_load(relabeling()),
    }
    with running(tmp_path / "prometheus", yaml.safe_dump({"scrape_configs": [scrape]})) as url:
        until(lambda: query(url, "query", query="node_load1"))
        found = {
            each["metric"]["__name__"]: each["metric"] for each in query(url, "query", query='{job="gpugauge-node"}')
        }
    assert {name for name in found if not name.startswith(("scrape_", "up"))} == {"gpugauge_device_info", "node_load1"}
    assert set(found["gpugauge_device_info"]) == {"__name__", "UUID", "job", "instance"}
