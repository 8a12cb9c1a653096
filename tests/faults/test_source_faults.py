"""Faults of what devices are read with: host engine, embedded engine, driver, libraries and reader process."""

import os
import re
import signal

import pytest

from exporter.backoff import LONGEST_PAUSE
from exporter.node.reader.supervisor import ReaderTimings
from exporter.node.simulation.document import CallFault, Disconnect, EngineRestart
from tests.exporter.node.exporter_process import INTERVAL_MS, alive, engine_address
from tests.fakes.build import build
from tests.faults.fault import Exposed, as_before, fault
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.slow]

READ = "dcgmEntitiesGetLatestValues"
DRIVER_MISSING = -56
NOT_LOADED, MISMATCH = 9, 18
"""NVML_ERROR_DRIVER_NOT_LOADED and NVML_ERROR_LIB_RM_VERSION_MISMATCH (nvml.h)."""
VALUES = 8 * 24
"""Of eight healthy GPUs: the rows of the default file but vGPU license."""
INTERVAL = INTERVAL_MS / 1000
TIMINGS = ReaderTimings()
NO_DEVICES = ("DCGM_", "gpugauge_device_info")


def down(source, reason):
    """The samples of a source that cannot be read."""
    return (
        f'gpugauge_source_up{{source="{source}"}} 0',
        f'gpugauge_source_problem{{source="{source}",reason="{reason}"}} 1',
    )


def crashed(source):
    """The samples while the next reader process is waited for."""
    counted = f'gpugauge_source_errors_total{{source="{source}",reason="crashed"}} > 0'
    return f'gpugauge_source_up{{source="{source}"}} 0', counted


def settled(node):
    """The exposition of a running exporter that has read its devices."""
    return Exposed(node.wait_until_up().text)


def with_rates(node):
    """The same with NVML, where rates need two collections."""
    return Exposed(node.wait_for(lambda scrape: len(scrape.measured()) == VALUES, "rates").text)


def assert_recovers(row, node, before):
    """The same process exposes the same series as before."""
    row.wait_until_recovered(node.scraper.get, as_before(before), INTERVAL)
    assert node.process.poll() is None


@fault(
    name="The host engine cannot be reached, or the connection to it breaks",
    shows=(*down("dcgm", "connection_lost"), 'gpugauge_source_up{source="kubelet"} 1'),
    absent=NO_DEVICES,
    pause=LONGEST_PAUSE,
)
def test_a_lost_connection_is_reported_and_no_old_sample_is_exposed(exporter, row):
    node = exporter()
    before, reader, lost = settled(node), node.reader_pid(), node.scenario_time()
    node.set_events(Disconnect(lost))
    row.wait_until_shown(node.scraper.get)
    node.set_events(Disconnect(lost, for_=node.scenario_time() - lost))
    assert_recovers(row, node, before)
    assert node.reader_pid() == reader


@fault(
    name="The host engine restarts and gives its GPUs other ids",
    shows=down("dcgm", "connection_lost"),
    absent=NO_DEVICES,
    pause=LONGEST_PAUSE,
)
def test_an_engine_that_restarts_with_other_entity_ids_gives_the_same_series(exporter, row):
    node = exporter()
    before = settled(node)
    ids = [gpu.entity_id for gpu in node.table.scenario.at(node.scenario_time()).gpus]
    node.set_events(EngineRestart(node.scenario_time(), for_=2.5))
    row.wait_until_shown(node.scraper.get)
    assert_recovers(row, node, before)
    assert [gpu.entity_id for gpu in node.table.scenario.at(node.scenario_time()).gpus] != ids


@fault(
    name="The host engine that `-r` names is not there yet when the exporter starts",
    shows=down("dcgm", "connection_lost"),
    absent=NO_DEVICES,
    pause=LONGEST_PAUSE,
)
def test_an_engine_that_is_late_at_start_is_read_once_it_answers(exporter, row):
    node = exporter(ready=False)
    node.set_events(Disconnect(0.0))
    node.kubelet.start()
    build(node.libraries)
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    row.wait_until_recovered(node.scraper.get, lambda exposed: bool(exposed.named("DCGM_")), INTERVAL)


@fault(
    name="The host engine that `-r` names is away and `--source=auto` is given too",
    shows=(
        'gpugauge_source_up{source="nvml"} 1',
        'gpugauge_build_info{source="nvml"} 1',
        "gpugauge_device_up 1",
    ),
    pause=LONGEST_PAUSE,
    collections=2,
)
def test_nvml_is_read_until_the_named_engine_answers(exporter, row, tmp_path):
    node = exporter("auto", "-r", engine_address(tmp_path), ready=False)
    node.kubelet.start()
    build(node.libraries, only="libnvidia")
    node.scraper.source = "nvml"
    row.wait_until_shown(node.scraper.get)
    build(node.libraries, only="libdcgm.so.4")
    row.wait_until_recovered(
        node.scraper.get, lambda exposed: exposed.value("gpugauge_build_info", source="dcgm") == 1, INTERVAL
    )
    changes = re.findall("reading from (host engine|embedded engine|nvml)", (node.folder / "log").read_text())
    assert changes == ["nvml", "host engine"]


@fault(
    name="The host engine accepts connections and does not answer, and `--source=auto` has not chosen it yet",
    shows=('gpugauge_source_up{source="nvml"} 1', 'gpugauge_build_info{source="nvml"} 1', "gpugauge_device_up 1"),
    collections=2,
)
def test_nvml_is_read_until_an_engine_that_hangs_answers(exporter, row, tmp_path):
    node = exporter("auto", "-r", engine_address(tmp_path), ready=False)
    node.kubelet.start()
    node.set_events(CallFault("dcgmHostengineIsHealthy", hang=True))
    build(node.libraries)
    node.scraper.source = "nvml"
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    row.wait_until_recovered(
        node.scraper.get, lambda exposed: exposed.value("gpugauge_build_info", source="dcgm") == 1, INTERVAL
    )


@fault(
    name="The driver of an embedded engine is unloaded",
    shows=(
        'gpugauge_source_up{source="dcgm"} 0',
        'gpugauge_source_errors_total{source="dcgm",reason="engine_dead"} > 0',
    ),
    absent=NO_DEVICES,
    pause=TIMINGS.longest_pause,
)
def test_an_embedded_engine_without_its_driver_is_reported_and_replaced(exporter, row):
    node = exporter(embedded=True)
    before, reader = settled(node), node.reader_pid()
    node.set_events(CallFault("dcgmGetAllDevices", status=DRIVER_MISSING))
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    assert_recovers(row, node, before)
    assert node.reader_pid() != reader


@fault(
    name="The reader process is killed, as by the kernel when memory is short",
    shows=crashed("dcgm"),
    absent=NO_DEVICES,
    pause=TIMINGS.longest_pause,
)
@pytest.mark.parametrize("embedded", [False, True], ids=["host engine", "embedded engine"])
def test_a_killed_reader_process_is_replaced(exporter, row, embedded):
    node = exporter(embedded=embedded)
    before, reader = settled(node), node.reader_pid()
    os.kill(reader, signal.SIGKILL)
    row.wait_until_shown(node.scraper.get)
    assert_recovers(row, node, before)
    assert node.reader_pid() not in (None, reader)


@fault(
    name="A native library crashes",
    shows=crashed("dcgm"),
    absent=NO_DEVICES,
    pause=TIMINGS.longest_pause,
)
def test_a_crash_in_native_code_ends_the_reader_process_alone(exporter, row):
    node = exporter()
    before = settled(node)
    node.set_events(CallFault(READ, crash=True))
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    assert_recovers(row, node, before)


@pytest.mark.slow
@fault(
    name="A call into the driver hangs",
    shows=down("dcgm", "slow"),
    absent=NO_DEVICES,
    pause=TIMINGS.deadline + TIMINGS.longest_pause,
)
def test_a_call_that_hangs_is_reported_as_slow_and_its_process_replaced_after_the_deadline(exporter, row):
    node = exporter()
    before, reader = settled(node), node.reader_pid()
    node.set_events(CallFault(READ, hang=True))
    row.wait_until_shown(node.scraper.get)
    node.wait_for(lambda scrape: scrape.reasons("dcgm") & {"hung"}, "hung reported")
    until(lambda: not alive(reader))
    node.set_events()
    assert_recovers(row, node, before)


@fault(
    name="The library of DCGM is not there (any more)",
    shows=down("dcgm", "library_missing"),
    absent=NO_DEVICES,
    pause=LONGEST_PAUSE,
)
def test_a_library_that_is_removed_is_missing_until_it_is_back(exporter, row):
    node = exporter()
    before = settled(node)
    (node.libraries / "libdcgm.so.4").unlink()
    os.kill(node.reader_pid(), signal.SIGKILL)
    row.wait_until_shown(node.scraper.get)
    build(node.libraries, only="libdcgm.so.4")
    assert_recovers(row, node, before)


@fault(
    name="The driver is unloaded while NVML is read",
    shows=down("nvml", "driver_not_loaded"),
    absent=NO_DEVICES,
    pause=LONGEST_PAUSE,
    collections=2,
)
def test_a_driver_that_is_unloaded_is_found_again(exporter, row):
    node = exporter("nvml", scenario="whole")
    before = with_rates(node)
    unloaded = [CallFault(name, status=NOT_LOADED) for name in ("nvmlDeviceGetCount_v2", "nvmlInitWithFlags")]
    node.set_events(*unloaded)
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    assert_recovers(row, node, before)


@fault(
    name="The driver is upgraded while NVML is read",
    shows=(
        'gpugauge_source_up{source="nvml"} 0',
        'gpugauge_source_errors_total{source="nvml",reason="driver_mismatch"} > 0',
    ),
    absent=NO_DEVICES,
    pause=TIMINGS.longest_pause,
    collections=2,
)
def test_after_an_upgrade_of_the_driver_another_process_reads(exporter, row):
    node = exporter("nvml", scenario="whole")
    before, reader = with_rates(node), node.reader_pid()
    node.set_events(CallFault("nvmlDeviceGetCount_v2", status=MISMATCH))
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    assert_recovers(row, node, before)
    assert node.reader_pid() != reader


@fault(
    name="The exporter starts before the libraries, the engine and the kubelet are there",
    shows=(*down("dcgm", "library_missing"), *down("kubelet", "socket_missing")),
    absent=(*NO_DEVICES, "gpugauge_device_allocated_pods"),
    pause=LONGEST_PAUSE,
)
def test_it_starts_without_libraries_and_kubelet_and_reads_them_when_they_come(exporter, row):
    node = exporter(ready=False)
    row.wait_until_shown(node.scraper.get)
    assert node.scraper.get("/health") == (200, "OK")
    node.kubelet.start()
    node.wait_for(lambda s: s.up("kubelet"), "kubelet found")
    build(node.libraries, only="libdcgm.so.4")
    shown = row.wait_until_recovered(
        node.scraper.get, lambda exposed: bool(exposed.named("gpugauge_allocation_info")), INTERVAL
    )
    assert any("embedder" in labels.get("pod", "") for name, labels, _ in shown.samples if name.startswith("DCGM_"))


@fault(
    name="An embedded engine needs longer than a collection to start, as on a node with many GPUs",
    shows=down("dcgm", "starting"),
    absent=NO_DEVICES,
    pause=TIMINGS.opening,
)
def test_an_engine_that_starts_slowly_is_waited_for(exporter, row):
    node = exporter(embedded=True, ready=False)
    node.set_events(CallFault("dcgmStartEmbedded", delay=2.0))
    node.kubelet.start()
    build(node.libraries, only="libdcgm.so.4")
    row.wait_until_shown(node.scraper.get)
    node.set_events()
    row.wait_until_recovered(node.scraper.get, lambda exposed: bool(exposed.named("DCGM_")), INTERVAL)
