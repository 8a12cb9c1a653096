"""Metrics kept with the client library are written byte for byte as the library writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UntypedMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from exporter.client_page import client_page
from exporter.exposition.exporter_metrics import ConfigState, SelfMetrics
from exporter.snapshot import Snapshot, SourceHealth

FAMILIES = (GaugeMetricFamily, CounterMetricFamily, UntypedMetricFamily)

texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=8)
samples = st.lists(st.tuples(texts, texts, st.floats()), max_size=4)


class Given:
    def __init__(self, families):
        self.families = families

    def collect(self):
        return self.families


def both(registry):
    return generate_latest(registry), generate_openmetrics(registry)


@given(st.lists(st.tuples(st.sampled_from(FAMILIES), texts, samples), max_size=4))
def test_any_metric_is_written_as_the_library_writes_it(described):
    families = []
    for number, (kind, text, given_samples) in enumerate(described):
        family = kind(f"a{number}", text, labels=("z", "a"))
        for one, other, value in given_samples:
            family.add_metric((one, other), value)
        families.append(family)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Given(families))
    assert client_page(registry) == both(registry)


def test_what_a_program_says_about_itself_is_written_as_the_library_writes_it():
    own = SelfMetrics({"hostname": "n1"}, config=lambda: ConfigState("0" * 64, successful=True, at=1.8e9))
    down = SourceHealth("kubelet", up=False, seconds=0.5, reason="timeout", message="m")
    own.observe(Snapshot(1.8e9, (), (down,), rejected={("F", "blank"): 2}, build={"source": "dcgm"}))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(own)
    assert client_page(registry) == both(registry)
    assert b"gpugauge_rejected_values_total{" in client_page(registry)[0]


def test_a_type_that_our_programs_do_not_use_is_refused_rather_than_written_wrong():
    registry = CollectorRegistry()
    Histogram("waits", "Waits.", registry=registry)
    with pytest.raises(KeyError):
        client_page(registry)
