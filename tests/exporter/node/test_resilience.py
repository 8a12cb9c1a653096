"""The node exporter as a real process while what it depends on fails: it responds, reports the failure and recovers."""

import json
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from exporter.node.simulation.document import CallFault, Disconnect, EngineRestart, GpuLoss
from simulators.kubelet import NORMAL, ListBehavior
from tests.exporter.node.exporter_process import (
    LIMIT_SECONDS,
    RESPONSE_SECONDS,
    alive,
    children,
    running_exporter,
    wait_until_ended,
)
from tests.fakes.build import build

pytestmark = pytest.mark.process

READ = "dcgmEntitiesGetLatestValues"
DRIVER_MISSING = -56
STOP_SECONDS = 8.0
"""Limit of a shutdown, 3.5 s without load; shorter than the reader's deadline (10 s), so that it is not waited for."""
VALUES = 8 * 23
"""Of eight healthy GPUs: the rows of the default file but vGPU license and XID. Rates need two collections."""


@pytest.fixture
def exporter(tmp_path):
    """Starts exporters; at the end of the test, no response of any of them may have been slow, failed or wrong."""
    started = []

    def start(*arguments, **more):
        return _recorded(started, tmp_path, *arguments, **more)

    yield start
    for one in started:
        assert one.scraper.faults == []
        assert one.scraper.count > 1
        assert one.scraper.slowest < RESPONSE_SECONDS
        measured = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in one.measured.items() if what)
        print(f"slowest of {one.scraper.count} responses {one.scraper.slowest * 1000:.0f} ms; {measured}")


def _recorded(started, folder, *arguments, **more):
    context = running_exporter(folder, *arguments, **more)

    class Recorded:
        def __enter__(self):
            started.append(context.__enter__())
            return started[-1]

        def __exit__(self, *error):
            return context.__exit__(*error)

    return Recorded()


def down(source, *reasons):
    """A condition: the source is reported as down, for one of these reasons."""
    return lambda scrape: scrape.up(source) is False and bool(scrape.reasons(source) & set(reasons))


def names(scrape):
    return {line.partition("{")[0] for line in scrape.dcgm()}


def assert_recovers(node, before):
    """The same process gets the same series as before."""
    source = node.scraper.source
    scrape = node.wait_for(lambda s: s.up(source) and s.dcgm() == before.dcgm(), "recovered", before)
    assert scrape.reasons(source) == set()
    assert node.process.poll() is None


def test_a_lost_connection_is_reported_and_no_old_sample_is_exposed(exporter):
    with exporter() as node:
        before, reader = node.scraper.latest, node.reader_pid()
        lost = node.scenario_time()
        node.set_events(Disconnect(lost))
        scrape = node.wait_for(down("dcgm", "connection_lost"), "down reported")
        assert scrape.dcgm() == set()
        assert scrape.series("gpugauge_device_info") == []
        assert scrape.up("kubelet")
        node.set_events(Disconnect(lost, for_=node.scenario_time() - lost))
        assert_recovers(node, before)
        assert node.reader_pid() == reader


def test_an_engine_that_restarts_with_other_entity_ids_gives_the_same_series(exporter):
    with exporter() as node:
        before = node.scraper.latest
        ids = [gpu.entity_id for gpu in node.table.scenario.at(node.scenario_time()).gpus]
        node.set_events(EngineRestart(node.scenario_time(), for_=2.0))
        node.wait_for(down("dcgm", "connection_lost"), "down reported")
        assert_recovers(node, before)
        assert [gpu.entity_id for gpu in node.table.scenario.at(node.scenario_time()).gpus] != ids


@pytest.mark.parametrize("embedded", [False, True], ids=["host engine", "embedded engine"])
def test_a_killed_reader_process_is_replaced(exporter, embedded):
    with exporter(embedded=embedded) as node:
        before, reader = node.scraper.latest, node.reader_pid()
        os.kill(reader, signal.SIGKILL)
        node.wait_for(down("dcgm", "crashed", "restarting"), "down reported")
        assert_recovers(node, before)
        assert node.reader_pid() not in (None, reader)
        assert {labels["reason"] for labels, _ in node.scraper.latest.series("gpugauge_source_errors_total")} >= {
            "crashed"
        }


def test_an_embedded_engine_without_its_driver_is_reported_and_replaced(exporter):
    with exporter(embedded=True) as node:
        before, reader = node.scraper.latest, node.reader_pid()
        node.set_events(CallFault("dcgmGetAllDevices", status=DRIVER_MISSING))
        node.wait_for(down("dcgm", "engine_dead", "restarting"), "down reported")
        node.set_events()
        assert_recovers(node, before)
        assert node.reader_pid() != reader


def test_a_crash_in_native_code_ends_the_reader_process_alone(exporter):
    with exporter() as node:
        before = node.scraper.latest
        node.set_events(CallFault(READ, crash=True))
        node.wait_for(down("dcgm", "crashed", "restarting"), "down reported")
        node.set_events()
        assert_recovers(node, before)


@pytest.mark.slow
def test_a_call_that_hangs_is_reported_as_slow_and_its_process_replaced_after_the_deadline(exporter):
    with exporter() as node:
        before, reader = node.scraper.latest, node.reader_pid()
        node.set_events(CallFault(READ, hang=True))
        node.wait_for(down("dcgm", "slow"), "slow reported")
        node.wait_for(down("dcgm", "hung"), "hung reported")
        assert not alive(reader)
        node.set_events()
        assert_recovers(node, before)


def test_while_the_kubelet_is_down_devices_are_read_and_allocations_kept_until_it_is_found_again(exporter):
    with exporter() as node:
        before = node.scraper.latest
        node.kubelet.stop()
        scrape = node.wait_for(down("kubelet", "socket_missing"), "down reported")
        assert scrape.up("dcgm") is not None
        kept = node.wait_for(lambda s: s.up("dcgm") and s.dcgm() == before.dcgm(), "allocations kept", before)
        assert kept.up("kubelet") is False
        node.kubelet.start()
        node.wait_until_up()
        assert_recovers(node, before)


def test_a_kubelet_that_left_its_socket_behind_is_unavailable(exporter):
    with exporter() as node:
        node.kubelet.stop(leave_socket=True)
        node.wait_for(down("kubelet", "unavailable"), "down reported")
        node.kubelet.start()
        node.wait_until_up()


@pytest.mark.slow
def test_while_the_kubelet_never_answers_its_deadline_is_reported_and_devices_are_read(exporter):
    with exporter() as node:
        before = node.scraper.latest
        node.kubelet.behavior = ListBehavior(delay=math.inf)
        node.wait_for(down("kubelet", "timeout"), "timeout reported")
        node.wait_for(lambda s: s.up("kubelet") is False and s.dcgm() == before.dcgm(), "devices read", before)
        node.kubelet.behavior = NORMAL
        node.wait_until_up()
        assert_recovers(node, before)


def test_a_library_that_is_removed_is_missing_until_it_is_back(exporter):
    with exporter() as node:
        before = node.scraper.latest
        (node.libraries / "libdcgm.so.4").unlink()
        os.kill(node.reader_pid(), signal.SIGKILL)
        node.wait_for(down("dcgm", "library_missing"), "missing reported")
        build(node.libraries, only="libdcgm.so.4")
        assert_recovers(node, before)


def test_a_driver_that_is_unloaded_and_upgraded_is_reported_and_found_again(exporter):
    with exporter("nvml", scenario="whole") as node:
        before = node.wait_for(lambda s: len(s.dcgm()) == VALUES, "rates")
        reader = node.reader_pid()
        node.set_events(CallFault("nvmlDeviceGetCount_v2", status=9), CallFault("nvmlInitWithFlags", status=9))
        node.wait_for(down("nvml", "driver_not_loaded"), "down reported")
        node.set_events()
        assert_recovers(node, before)
        node.set_events(CallFault("nvmlDeviceGetCount_v2", status=18))
        node.wait_for(down("nvml", "driver_mismatch", "restarting"), "mismatch reported")
        node.set_events()
        assert_recovers(node, before)
        assert node.reader_pid() != reader


def test_it_starts_without_libraries_and_kubelet_and_reads_them_when_they_come(exporter):
    with exporter(ready=False) as node:
        scrape = node.wait_for(down("dcgm", "library_missing"), "missing reported")
        assert scrape.reasons("kubelet") == {"socket_missing"}
        assert scrape.dcgm() == set()
        assert node.scraper.get("/health") == (200, "OK")
        assert node.scraper.get("/readyz")[0] == 200
        node.kubelet.start()
        node.wait_for(lambda s: s.up("kubelet"), "kubelet found")
        build(node.libraries, only="libdcgm.so.4")
        scrape = node.wait_until_up()
        assert any('pod="embedder' in line for line in scrape.dcgm())


def test_auto_never_simulates_and_reads_a_library_that_comes_later(exporter):
    with exporter("auto", ready=False) as node:
        scrape = node.wait_for(down("dcgm", "library_missing"), "missing reported")
        assert scrape.dcgm() == set()
        node.kubelet.start()
        node.scraper.source = "nvml"
        build(node.libraries, only="libnvidia")
        scrape = node.wait_until_up()
        assert scrape.up("simulated") is None
        assert [labels["source"] for labels, _ in scrape.series("gpugauge_build_info")] == ["nvml"]


@pytest.mark.parametrize(("more", "level"), [((), "info"), (("--debug",), "debug")])
def test_the_reader_process_logs_in_the_format_and_at_the_level_of_its_parent_process(exporter, more, level):
    with exporter("auto", "--log-format", "json", *more, ready=False) as node:
        node.scraper.source = "nvml"
        node.kubelet.start()
        build(node.libraries, only="libnvidia")
        node.wait_until_up()
        command_line = Path(f"/proc/{node.reader_pid()}/cmdline").read_text().split("\0")
        assert command_line[-3:] == ["json", level, ""]
        lines = [json.loads(line) for line in (node.folder / "log").read_text().splitlines()]
    assert any(line["logger"].startswith("exporter.node.reader.") for line in lines)
    assert all(line.keys() >= {"time", "level", "msg", "logger"} for line in lines)


def test_auto_reads_nvml_until_the_named_host_engine_answers(exporter):
    with exporter("auto", "-r", "localhost:5555", ready=False) as node:
        node.kubelet.start()
        node.scraper.source = "nvml"
        build(node.libraries, only="libnvidia")
        node.wait_until_up()
        node.scraper.source = "dcgm"
        build(node.libraries, only="libdcgm.so.4")
        scrape = node.wait_until_up()
        assert [labels["source"] for labels, _ in scrape.series("gpugauge_build_info")] == ["dcgm"]
        changes = re.findall("reading from (host engine|embedded engine|nvml)", (node.folder / "log").read_text())
        assert changes == ["nvml", "host engine"]


def terminate(node, pid):
    """Send SIGTERM; return exit code and seconds. No process that it started may be left."""
    started = [*children(pid), *(grandchild for child in children(pid) for grandchild in children(child))]
    assert started
    node.scraper.stop()
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    code = node.process.wait(timeout=LIMIT_SECONDS)
    took = node.measured["terminated"] = time.monotonic() - began
    wait_until_ended(started)
    return code, took


def log_after_sigterm(node):
    """What the process and its reader process logged after they were asked to stop."""
    log = (node.folder / "log").read_text()
    assert log.count("msg=stopping") == 1, log
    return log.partition("msg=stopping")[2].splitlines()[1:]


@pytest.mark.parametrize("hangs", ["nothing", "dcgm", "kubelet"])
def test_sigterm_ends_it_and_its_reader_process_soon_with_status_0_and_without_messages(exporter, hangs):
    with exporter() as node:
        if hangs == "dcgm":
            node.set_events(CallFault("*", hang=True))
            node.wait_for(down("dcgm", "slow"), "slow reported")
        elif hangs == "kubelet":
            node.kubelet.behavior = ListBehavior(delay=math.inf)
            calls = node.kubelet.calls
            node.wait_for(lambda _: node.kubelet.calls > calls, "kubelet hangs")
        code, took = terminate(node, node.process.pid)
        assert code == 0
        assert took < STOP_SECONDS
        assert log_after_sigterm(node) == []


UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--")


def namespaces_are_allowed():
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not namespaces_are_allowed(), reason="process namespaces are not allowed here")
def test_sigterm_ends_it_as_the_first_process_of_a_container_even_during_a_hang(exporter):
    with exporter(prefix=UNSHARE) as node:
        (first,) = children(node.process.pid)
        assert namespace_pid(first) == 1
        node.set_events(CallFault("*", hang=True))
        node.wait_for(down("dcgm", "slow"), "slow reported")
        code, took = terminate(node, first)
        assert code == 0
        assert took < STOP_SECONDS


def namespace_pid(pid):
    """The process id that the process has in its own namespace."""
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        return int(next(line.split()[-1] for line in status if line.startswith("NSpid:")))


def test_sighup_reloads_a_changed_counters_file_and_a_broken_one_changes_nothing(exporter, tmp_path):
    counters = tmp_path / "counters.csv"
    row = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
    more = row + "DCGM_FI_DEV_SM_CLOCK, gauge, Clock.\nno row\n"
    counters.write_text(row)
    with exporter("dcgm", "-f", str(counters)) as node:
        first = node.scraper.latest
        assert names(first) == {"DCGM_FI_DEV_GPU_TEMP"}
        counters.write_text(more)
        node.process.send_signal(signal.SIGHUP)
        second = node.wait_for(lambda s: names(s) == {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"}, "new field read")
        assert reloaded(second)
        assert [scrape.value("gpugauge_config_rejected_rows") for scrape in (first, second)] == [0, 1]
        assert digest(second) != digest(first)
        for broken in ("this is no counters file\n", "# comments only\n", None):
            counters.write_text(broken) if broken else counters.unlink()
            node.process.send_signal(signal.SIGHUP)
            scrape = node.wait_for(lambda s: not reloaded(s), "broken file reported")
            assert digest(scrape) == digest(second)
            assert scrape.value("gpugauge_config_rejected_rows") == 1
            node.wait_for(lambda s: s.dcgm() == second.dcgm(), "old fields kept", second)
            counters.write_text(row)
            node.process.send_signal(signal.SIGHUP)
            node.wait_for(reloaded, "repaired")
            counters.write_text(more)
            node.process.send_signal(signal.SIGHUP)
            node.wait_for(lambda s: s.dcgm() == second.dcgm(), "changed again", second)


@pytest.mark.parametrize(("source", "library"), [("dcgm", "libdcgm.so.4"), ("nvml", "libnvidia")])
def test_with_an_unusable_counters_file_it_runs_without_fields_and_unready_until_sighup(
    exporter, tmp_path, source, library
):
    counters = tmp_path / "counters.csv"
    counters.write_text("# comments only\n")
    with exporter(source, "-f", str(counters), ready=False) as node:
        build(node.libraries, only=library)
        node.kubelet.start()
        scrape = node.wait_for(lambda s: s.up(source) and s.value("gpugauge_devices_observed"), "devices found")
        assert scrape.series("gpugauge_device_info")
        assert (scrape.dcgm(), digest(scrape), reloaded(scrape)) == (set(), [], False)
        message = "the counters file has no row that can be used; the log names it\n"
        assert node.scraper.get("/readyz") == (503, message)
        assert node.scraper.get("/health") == (200, "OK")
        counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n")
        node.process.send_signal(signal.SIGHUP)
        scrape = node.wait_for(lambda s: names(s) == {"DCGM_FI_DEV_GPU_TEMP"}, "mended file read")
        assert reloaded(scrape)
        assert len(digest(scrape)) == 1
        assert node.scraper.get("/readyz") == (200, "ok\n")


def reloaded(scrape):
    """Whether the last attempt to read the counters file succeeded."""
    return scrape.value("gpugauge_config_last_reload_successful") == 1


def digest(scrape):
    return [labels["sha256"] for labels, _ in scrape.series("gpugauge_config_info")]


def gpus_up(scrape):
    return {labels["UUID"]: value for labels, value in scrape.series("gpugauge_device_up")}


@pytest.mark.parametrize("source", ["dcgm", "nvml"])
def test_a_lost_gpu_stays_known_when_the_reader_process_is_replaced_and_at_a_reload(exporter, tmp_path, source):
    counters = tmp_path / "counters.csv"
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, x\n")
    with exporter(source, "-f", str(counters), scenario="whole") as node:
        gpus = gpus_up(node.scraper.latest)
        lost = min(gpus)
        node.set_events(GpuLoss(lost, node.scenario_time(), seen="absent"))
        with_one_lost = {uuid: float(uuid != lost) for uuid in gpus}
        node.wait_for(lambda s: gpus_up(s) == with_one_lost, "lost")
        reader = node.reader_pid()
        os.kill(reader, signal.SIGKILL)
        node.wait_for(lambda s: s.up(source) is False, "down reported")
        scrape = node.wait_for(lambda s: s.up(source) and s.dcgm(), "the next reader process answers")
        assert gpus_up(scrape) == with_one_lost
        assert scrape.value("gpugauge_devices_expected") == len(gpus)
        reader = node.reader_pid()
        counters.write_text("DCGM_FI_DEV_SM_CLOCK, gauge, x\n")
        scrape = node.wait_for(lambda s: names(s) == {"DCGM_FI_DEV_SM_CLOCK"}, "the new counters are in use")
        assert gpus_up(scrape) == with_one_lost
        assert scrape.value("gpugauge_devices_expected") == len(gpus)
        assert node.reader_pid() == reader
