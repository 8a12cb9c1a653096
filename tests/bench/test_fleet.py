"""The fleet that rules are measured with: it has the series of our exporters, every one once, and their past."""

from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from bench.fleet_data import FleetSize, node_exposition, node_names, pods, state_exposition, stock_exposition
from bench.fleet_targets import STEP, FleetTarget, FleetTargets, own_targets, stock_targets
from exporter.commands.metrics import sections

SIZE = FleetSize(whole=2, partitioned=1, shared=1, pending=3)
EXPOSED = {metric.name: set(metric.schema.names) for section in sections() for metric in section.metrics}


def series(text: str) -> list[tuple[str, dict[str, str]]]:
    return [(sample.name, sample.labels) for family in parsed(text) for sample in family.samples]


@pytest.mark.parametrize(("kind", "devices", "pairs"), [("whole", 8, 7), ("mig_56", 56, 48), ("time_sliced", 8, 16)])
def test_a_node_has_eight_gpus_and_every_device_pods_of_its_own(kind, devices, pairs):
    found = Counter(name for name, _ in series(node_exposition("n", kind)))
    assert found["gpugauge_device_busy_ratio"] == devices
    assert found["gpugauge_gpu_temperature_celsius"] == 8
    allocations = [labels for name, labels in series(node_exposition("n", kind)) if name == "gpugauge_allocation_info"]
    assert len({(labels["gpu_namespace"], labels["gpu_pod"]) for labels in allocations}) == len(allocations) == pairs


def test_every_series_of_our_exporters_is_there_once_and_has_labels_that_it_can_have():
    for target in own_targets(SIZE):
        found = series(target.text())
        assert len({(name, *sorted(labels.items())) for name, labels in found}) == len(found)
        for name, labels in found:
            if name.startswith("gpugauge_") and name != "gpugauge_build_info":
                assert set(labels) - {"node"} <= EXPOSED[name], name


def test_series_of_two_nodes_have_nothing_in_common_that_tells_gpus_and_pods_apart():
    names = [name for name, _ in node_names(SIZE)]
    uuids = [{labels["UUID"] for _, labels in series(node_exposition(n, "whole")) if "UUID" in labels} for n in names]
    assert len(set.union(*uuids)) == sum(map(len, uuids))
    every = list(pods(SIZE))
    assert len({(pod.namespace, pod.name) for pod in every}) == len(every) == 2 * 7 + 48 + 16 + 3


def test_a_stock_exporter_has_dcgm_names_alone_and_no_empty_label():
    text = stock_exposition("n", "whole")
    assert {line.partition("_")[0] for line in text.splitlines()} == {"DCGM"}
    assert '=""' not in text
    assert {target.job for target in stock_targets(SIZE)} == {"dcgm-exporter", "kube-state-metrics"}


def test_kube_state_metrics_knows_as_many_pods_without_gpus():
    found = Counter(name for name, _ in series(state_exposition(SIZE, 0.0)))
    number = len(list(pods(SIZE)))
    assert (found["kube_pod_start_time"], found["kube_pod_status_phase"]) == (2 * number, 10 * number)


def test_each_scrape_of_a_target_is_a_minute_later_than_the_one_before_until_now():
    served = FleetTargets({"/a": FleetTarget("a", "a", lambda: "x 1\n")}, minutes=2, began=600.0)
    answers = [served.answer("/a") for _ in range(3)]
    assert answers == [f"x 1 {second * 1000}\n".encode() for second in (600 - 2 * STEP, 600 - STEP, 600)]
    assert served.scraped_rounds() == 3
