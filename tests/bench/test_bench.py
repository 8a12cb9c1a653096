"""The bench measures everything that has a budget. Figures of time are not compared here, counts of series are."""

from dataclasses import replace

import pytest

from bench.__main__ import Size, sections
from bench.cardinality import cardinality_section
from bench.fixture import PARTITIONED, SHARED, WHOLE
from bench.table import BenchSection, Figure, over
from exporter.node.devices.counters.computed_metrics import ALWAYS_READ
from exporter.node.devices.fields.field import fields

pytestmark = pytest.mark.bench

TINY = Size(
    repetitions=8,
    scrapes=4,
    collections=20,
    kills=1,
    reads=1,
    dense_fields=4,
    settle=0.2,
    starts=1,
    pods=200,
    watched=300,
    watch_seconds=1.0,
)
COLLECTION = (
    "reader: library call",
    "reader: decode records",
    "reader: encode message",
    "reader: its loop and pipe",
    "parent: request and receive",
    "parent: decode message",
    "parent: kubelet List",
    "parent: parse the kubelet's response",
    "parent: attribute",
    "parent: families",
    "parent: render families",
    "parent: exporter metrics",
    "parent: compress",
    "our Python code in one collection",
    "our Python code and the kubelet List",
    "whole collection",
)
SCRAPES = tuple(
    f"{connection}, {form}, {scrapers}: p99"
    for connection in ("new", "kept")
    for form in ("plain", "gzip")
    for scrapers in ("1 scraper", "10 scrapers")
)
MEMORY = tuple(
    f"{when}: {what}"
    for when in ("before libdcgm", "with fake libdcgm")
    for what in (
        "resident, parent",
        "resident, reader",
        "resident, both, shared pages once",
        "proportional share, both",
    )
)
EXPOSITION = ("start of the process to the first full exposition", "series of the exposition", "series of one")
GROWTH = ("growth of resident memory over",)
REPLICAS = (
    "kubelet List and what is done with it, pods as before",
    "the decoding after a pod came or went",
    "whole collection",
)
CARDINALITY = tuple(
    f"{node}: {mode}"
    for node in ("8 GPUs", "56 MIG devices", "8 GPUs, 4 pods on each through replicas")
    for mode in ("dcgm-exporter", "default", "--allocation-labels=none")
)
CHANGES = (
    *GROWTH,
    "after the collections: more descriptors",
    "after the collections: more threads",
    "after the collections: more DCGM groups and field groups",
    "after 1 kills of the reader process: more descriptors",
    "after 1 kills of the reader process: more threads",
)
AUDIT = ("size of a day: 8 GPUs, 2,000 pods", "CPU of noting and writing")
WATCHER = ("first sync", "peak memory", "CPU at 50 changes/s of pods", "first collection", "series")
EXPECTED = (
    COLLECTION, SCRAPES, MEMORY, EXPOSITION, COLLECTION, SCRAPES, EXPOSITION, ("slowest of 1 reads",), REPLICAS,
    CARDINALITY, GROWTH, CHANGES, AUDIT, WATCHER,
)  # fmt: skip


@pytest.fixture(scope="module")
def measured():
    few = [replace(WHOLE, fields=5), replace(PARTITIONED, fields=4), replace(SHARED, fields=4)]
    return list(sections(TINY, *few))


@pytest.mark.bench
def test_every_row_is_there_with_a_value_and_its_result(measured):
    for section, expected in zip(measured, EXPECTED, strict=True):
        assert len(section.rows) == len(expected), section.title
        for row, beginning in zip(section.rows, expected, strict=True):
            assert row.what.startswith(beginning)
            assert row.columns()[3] in ({""} if row.budget is None else {"ok", "OVER"})


@pytest.mark.bench
def test_the_number_of_series_per_device_keeps_its_budget(measured):
    rows = [row for section in measured for row in section.rows if row.what.startswith("series of one")]
    assert [row.what for row in rows] == ["series of one GPU", "series of one MIG device"]
    assert not [row for row in rows if row.over or row.value < 5]


@pytest.mark.bench
def test_of_each_device_dcgm_exporter_has_its_series_for_every_pod_of_the_day():
    computed = {row.what: row.value for row in cardinality_section().rows if row.what.endswith("dcgm-exporter")}
    # Of each device 21 pods and one time without any; of a shared one the four pods of the beginning and 20 more.
    assert list(computed.values()) == [8 * 23 * 22, 56 * 17 * 22, 8 * 23 * 24]


@pytest.mark.bench
def test_changes_leave_nothing_behind(measured):
    assert not [row.what for row in measured[-3].rows if "more" in row.what and row.over]


@pytest.mark.bench
def test_a_day_of_the_audit_log_keeps_its_budget_of_bytes(measured):
    size = measured[-2].rows[0]
    assert 1 < size.value < size.budget


@pytest.mark.bench
def test_the_row_of_the_watcher_says_what_its_cpu_depends_on(measured):
    text = measured[-1].text()
    assert "Cluster watcher: 300 pods, 100% with GPUs, 30 nodes" in text
    assert "Of the changes every one alters what the watcher keeps of the pod." in text


@pytest.mark.bench
def test_every_sample_was_read_and_exposed(measured):
    of_instances = sum(fields()[number].scope == "instance" for number in ALWAYS_READ)
    of_gpus = len(ALWAYS_READ) - of_instances
    assert f"{8 * (5 + of_gpus + of_instances)} samples." in measured[0].text()
    assert f"{56 * (4 + of_instances) + 8 * of_gpus} samples." in measured[4].text()
    assert PARTITIONED.series() == 56 * 40


def test_a_row_over_its_budget_is_found_and_marked():
    rows = [Figure("a", 2.0, "ms", 1.0), Figure("b", 1.0, "ms", 1.0), Figure("c", 5.0, "MiB")]
    section = BenchSection("title", rows, ["a remark"])
    assert over([section]) == rows[:1]
    assert [line.split() for line in section.text().splitlines()[3:]] == [
        ["a", "2.00", "ms", "1.00", "ms", "OVER"],
        ["b", "1.00", "ms", "1.00", "ms", "ok"],
        ["c", "5.00", "MiB"],
        ["a", "remark"],
    ]


def test_the_pods_of_shared_devices_have_every_replica_once_and_about_as_many_each():
    rows = SHARED.allocations()
    ids = [device_id for *_, listed in rows for device_id in listed]
    assert len(ids) == len(set(ids)) == 56 * 80
    assert len(rows) == 250
    assert {len(tuple(listed)) for *_, listed in rows} == {17, 18}
