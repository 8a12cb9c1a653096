"""What users of GPU exporters reported, as tests: cardinality. A test is named after the number of its report."""

import pytest

from tests.exporter.node.scenario_flow import SCENARIOS, SimulatedFlow, series_of

MOST_LABELS = 15
POD = {"namespace", "pod", "container"}


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - {"hang", "crash"}))
def test_report_27_a_series_of_a_device_has_at_most_15_labels_and_its_pod_adds_three(name):
    flow, plain = SimulatedFlow(name), SimulatedFlow(name, attributed=False)
    series, without = series_of(flow.exposition(2.0).text), series_of(plain.exposition(2.0).text)
    labels = [{key for key, _ in labels} for metric, labels in series if metric.startswith("DCGM_")]
    assert max(map(len, labels), default=0) <= MOST_LABELS
    names = set().union(*labels)
    assert names <= POD | {key for metric, pairs in without if metric.startswith("DCGM_") for key, _ in pairs}


@pytest.mark.parametrize("text", ["serial", "architecture", "driver_version"])
def test_report_27_a_text_that_does_not_change_is_in_one_info_series_alone(text):
    series = series_of(SimulatedFlow("mig").exposition().text)
    found = {metric for metric, labels in series for key, value in labels if key == text and value}
    assert found == {"gpugauge_device_info"}
