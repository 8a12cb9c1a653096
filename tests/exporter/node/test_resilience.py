"""The node exporter as a real process: what it depends on comes later, it reloads and stops. Faults: tests/faults."""

import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from exporter.node.simulation.document import CallFault, GpuLoss
from simulators.kubelet import ListBehavior
from tests.exporter.node.exporter_process import (
    LIMIT_SECONDS,
    RESPONSE_SECONDS,
    children,
    running_exporter,
    wait_until_ended,
)
from tests.fakes.build import build

pytestmark = [pytest.mark.process, pytest.mark.slow]

STOP_SECONDS = 8.0
"""Limit of a shutdown, 3.5 s without load; shorter than the reader's deadline (10 s), so that it is not waited for."""


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
    with exporter("dcgm", "-f", str(counters), has_activity=False) as node:
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
    with exporter(source, "-f", str(counters), scenario="whole", has_activity=False) as node:
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
