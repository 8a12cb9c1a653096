"""The process metrics are those of the client library's collector, by name, help, type and value."""

import os
from pathlib import Path

import pytest
from prometheus_client import ProcessCollector

from exporter.process_metrics import ProcessMetrics

MOVING = {"process_virtual_memory_bytes": 0.1, "process_resident_memory_bytes": 0.1, "process_cpu_seconds": 0.2}
"""What changes between two looks, and the share by which it may."""


def by_name(collector):
    return {metric.name: metric for metric in collector.collect()}


def test_they_equal_those_of_the_client_library():
    theirs, ours = by_name(ProcessCollector(registry=None)), by_name(ProcessMetrics())
    assert ours.keys() == theirs.keys()
    for name, metric in theirs.items():
        assert (ours[name].type, ours[name].documentation) == (metric.type, metric.documentation)
        (sample,), (own,) = metric.samples, ours[name].samples
        assert own.name == sample.name
        assert own.value == pytest.approx(sample.value, rel=MOVING.get(name, 1e-9), abs=0.02)


def test_an_open_file_more_is_an_open_file_more():
    before = by_name(ProcessMetrics())["process_open_fds"].samples[0].value
    with Path(os.devnull).open():
        assert by_name(ProcessMetrics())["process_open_fds"].samples[0].value == before + 1


def test_without_proc_the_rest_is_still_there(tmp_path):
    assert set(by_name(ProcessMetrics(tmp_path))) == {"process_cpu_seconds"}
