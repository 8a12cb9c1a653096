"""Relabelings of public charts and monitors, on a real Prometheus: each pod keeps the series of its GPUs."""

import json

import pytest

from tests.dashboards.prometheus import eventually, query, running, serving
from tests.exporter.node.scenario_flow import HOSTNAME, SimulatedFlow

POD = "chat-serving-7c9d6b5f48-m8qzl"
"""It has one GPU alone."""
DISCOVERED = {"namespace": "monitoring", "pod": "exporter-x", "service": "exporter", "node": HOSTNAME}
"""Labels of the target."""


def copied(name):
    return {"source_labels": [f"exported_{name}"], "regex": "(.+)", "target_label": name}


CONFIGURATIONS = {
    # NVIDIA/gpu-operator #2938: what the target's labels have pushed aside is copied over them.
    "gpu-operator": {"metric_relabel_configs": [copied("pod"), copied("namespace"), copied("container")]},
    # The PodMonitor of deckhouse: the labels of the exporter's own pod are dropped.
    "deckhouse": {"relabel_configs": [{"action": "labeldrop", "regex": "pod|namespace|service"}]},
    # NVIDIA/dcgm-exporter #529: the name of the node becomes the label hostname of the target.
    "hostname": {
        "relabel_configs": [{"source_labels": ["node"], "target_label": "hostname"}],
        "metric_relabel_configs": [copied("pod"), copied("namespace"), copied("container")],
    },
}


def settings(address):
    scrapes = [
        {"job_name": name, "static_configs": [{"targets": [address], "labels": DISCOVERED}], **relabelings}
        for name, relabelings in CONFIGURATIONS.items()
    ]
    return json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes})


@pytest.mark.prometheus
def test_report_86_a_pod_keeps_the_series_of_its_gpu_under_the_relabelings_of_others(tmp_path):
    page = {"/metrics": SimulatedFlow("whole", t=5.0).exposition().text.decode()}
    with serving(page) as address, running(tmp_path, settings(address)) as base:
        eventually(lambda: len(query(base, "query", query="up == 1")) == len(CONFIGURATIONS), "all are scraped")
        of_pod = f'DCGM_FI_DEV_GPU_UTIL{{pod="{POD}",namespace="inference",container="server"}}'
        found = {each["metric"]["job"]: each["metric"] for each in query(base, "query", query=of_pod)}
        mapped = query(base, "query", query=f'gpugauge_allocation_info{{gpu_pod="{POD}"}} == 1')
    assert found.keys() == CONFIGURATIONS.keys()
    assert all(labels["hostname"] == HOSTNAME for labels in found.values())
    assert {each["metric"]["job"] for each in mapped} == CONFIGURATIONS.keys()
