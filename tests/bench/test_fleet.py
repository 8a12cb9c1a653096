"""The fleet that rules are measured with: it has the metrics and labels of our exporters, and every series once."""

from prometheus_client.parser import text_string_to_metric_families as parsed

from bench.fleet_data import FleetSize, devices, exposition
from exporter.commands.metrics import sections

SIZE = FleetSize(whole=2, partitioned=1, shared=1)
TARGET = {"job", "instance"}


def samples():
    text = exposition(SIZE, 7200.0)
    return text.count("\n"), [sample for family in parsed(text) for sample in family.samples]


def test_the_fleet_has_whole_partitioned_and_shared_gpus():
    found = list(devices(SIZE))
    assert len([device for device in found if device.instance < 0]) == 4 * 8
    assert len([device for device in found if device.instance >= 0]) == 8 * 7
    assert sorted({len(device.pods) for device in found}) == [0, 1, 4]


def test_every_series_is_one_of_our_exporters_with_labels_that_it_has_and_is_there_once():
    exposed = {metric.name: set(metric.schema.names) for section in sections() for metric in section.metrics}
    number, found = samples()
    series = {(sample.name, tuple(sorted(sample.labels.items()))) for sample in found}
    assert len(series) == number
    for name, labels in series:
        assert {label for label, _ in labels} <= exposed[name] | TARGET, name
