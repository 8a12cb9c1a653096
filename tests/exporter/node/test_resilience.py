"""The real process while everything around it breaks: it answers at once, tells the truth, and recovers by itself."""

import math
import os
import signal
import subprocess
import time

import pytest

from exporter.node.attribution.kubelet import DEADLINE_SECONDS
from exporter.node.simulation.document import Call, Disconnect, Restart
from simulators.kubelet import WELL, Behaviour
from tests.exporter.node.exporter_process import (
    PAGE_SECONDS,
    RECOVERY_SECONDS,
    TRUTH_SECONDS,
    alive,
    children,
    world,
)
from tests.fakes.build import build

READ = "dcgmEntitiesGetLatestValues"
DRIVER_MISSING = -56
STOP_SECONDS = 3.5
VALUES = 8 * 23
"""Of eight healthy GPUs: the fields of the default file but the vGPU licence and XIDs. Rates need two passes."""


@pytest.fixture
def node(tmp_path):
    """Makes worlds; when the test is over, no scrape of any of them may have been slow, failed or untrue."""
    made = []

    def make(*arguments, **more):
        return _watched(made, tmp_path, *arguments, **more)

    yield make
    for one in made:
        assert one.scraper.faults == []
        assert one.scraper.count > 1
        assert one.scraper.slowest < PAGE_SECONDS
        measured = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in one.measured.items() if what)
        print(f"slowest of {one.scraper.count} answers {one.scraper.slowest * 1000:.0f} ms; {measured}")


def _watched(made, folder, *arguments, **more):
    context = world(folder, *arguments, **more)

    class Watched:
        def __enter__(self):
            made.append(context.__enter__())
            return made[-1]

        def __exit__(self, *error):
            return context.__exit__(*error)

    return Watched()


def down(source, *reasons):
    """The source is said to be down, for one of these reasons."""
    return lambda page: page.up(source) is False and bool(page.reasons(source) & set(reasons))


def names(page):
    return {line.partition("{")[0] for line in page.dcgm()}


def recovered(node, before):
    """The same series as before, from the same process."""
    source = node.scraper.source
    page = node.until(lambda p: p.up(source) and p.dcgm() == before.dcgm(), RECOVERY_SECONDS, "recovered", before)
    assert page.reasons(source) == set()
    assert node.process.poll() is None


def test_a_lost_connection_is_told_and_nothing_old_is_shown(node):
    with node() as made:
        before, child = made.scraper.latest, made.reader()
        lost = made.t()
        made.play(Disconnect(lost))
        page = made.until(down("dcgm", "connection_lost"), TRUTH_SECONDS, "down told")
        assert page.dcgm() == set()
        assert page.series("gpugauge_device_info") == []
        assert page.up("kubelet")
        made.play(Disconnect(lost, for_=made.t() - lost))
        recovered(made, before)
        assert made.reader() == child


def test_an_engine_that_restarts_with_other_ids_gives_the_same_series(node):
    with node() as made:
        before = made.scraper.latest
        ids = [board.entity_id for board in made.player.scenario.at(made.t()).boards]
        made.play(Restart(made.t(), for_=2.0))
        made.until(down("dcgm", "connection_lost"), TRUTH_SECONDS, "down told")
        recovered(made, before)
        assert [board.entity_id for board in made.player.scenario.at(made.t()).boards] != ids


@pytest.mark.parametrize("embedded", [False, True], ids=["host engine", "embedded engine"])
def test_a_killed_reader_is_replaced(node, embedded):
    with node(embedded=embedded) as made:
        before, child = made.scraper.latest, made.reader()
        os.kill(child, signal.SIGKILL)
        made.until(down("dcgm", "crashed", "restarting"), TRUTH_SECONDS, "down told")
        recovered(made, before)
        assert made.reader() not in (None, child)
        assert {labels["reason"] for labels, _ in made.scraper.latest.series("gpugauge_source_errors_total")} >= {
            "crashed"
        }


def test_an_embedded_engine_without_its_driver_is_told_and_replaced(node):
    with node(embedded=True) as made:
        before, child = made.scraper.latest, made.reader()
        made.play(Call("dcgmGetAllDevices", status=DRIVER_MISSING))
        made.until(down("dcgm", "engine_dead", "restarting"), TRUTH_SECONDS, "down told")
        made.play()
        recovered(made, before)
        assert made.reader() != child


def test_a_crash_in_native_code_costs_the_reader_alone(node):
    with node() as made:
        before = made.scraper.latest
        made.play(Call(READ, crash=True))
        made.until(down("dcgm", "crashed", "restarting"), TRUTH_SECONDS, "down told")
        made.play()
        recovered(made, before)


@pytest.mark.slow
def test_a_call_that_hangs_is_told_at_once_and_its_process_replaced_after_the_deadline(node):
    with node() as made:
        before, child = made.scraper.latest, made.reader()
        made.play(Call(READ, hang=True))
        made.until(down("dcgm", "slow"), TRUTH_SECONDS, "down told")
        made.until(down("dcgm", "hung"), 15, "hung told")
        assert not alive(child)
        made.play()
        recovered(made, before)


def test_a_kubelet_that_goes_costs_neither_devices_nor_holders_at_once_and_is_found_again(node):
    with node() as made:
        before = made.scraper.latest
        made.kubelet.stop()
        page = made.until(down("kubelet", "socket_missing"), TRUTH_SECONDS, "down told")
        assert page.up("dcgm") is not None
        held = made.until(lambda p: p.up("dcgm") and p.dcgm() == before.dcgm(), RECOVERY_SECONDS, "held")
        assert held.up("kubelet") is False
        made.kubelet.start()
        made.whole()
        recovered(made, before)


def test_a_kubelet_that_left_its_socket_behind_is_unavailable(node):
    with node() as made:
        made.kubelet.stop(leave_socket=True)
        made.until(down("kubelet", "unavailable"), TRUTH_SECONDS, "down told")
        made.kubelet.start()
        made.whole()


@pytest.mark.slow
def test_a_kubelet_that_never_answers_is_given_up_after_its_deadline_and_devices_are_read_on(node):
    with node() as made:
        before = made.scraper.latest
        made.kubelet.behaviour = Behaviour(delay=math.inf)
        made.until(down("kubelet", "timeout"), DEADLINE_SECONDS + TRUTH_SECONDS, "down told")
        made.until(lambda p: p.up("kubelet") is False and p.dcgm() == before.dcgm(), RECOVERY_SECONDS, "read on")
        made.kubelet.behaviour = WELL
        made.whole()
        recovered(made, before)


def test_a_library_that_is_taken_away_is_missing_until_it_is_back(node):
    with node() as made:
        before = made.scraper.latest
        (made.libraries / "libdcgm.so.4").unlink()
        os.kill(made.reader(), signal.SIGKILL)
        made.until(down("dcgm", "library_missing"), RECOVERY_SECONDS, "missing told")
        build(made.libraries, only="libdcgm.so.4")
        recovered(made, before)


def test_a_driver_that_is_unloaded_and_upgraded_is_told_and_found_again(node):
    with node("nvml", scenario="whole") as made:
        before = made.until(lambda p: len(p.dcgm()) == VALUES, RECOVERY_SECONDS, "rates")
        child = made.reader()
        made.play(Call("nvmlDeviceGetCount_v2", status=9), Call("nvmlInitWithFlags", status=9))
        made.until(down("nvml", "driver_not_loaded"), TRUTH_SECONDS, "down told")
        made.play()
        recovered(made, before)
        made.play(Call("nvmlDeviceGetCount_v2", status=18))
        made.until(down("nvml", "driver_mismatch", "restarting"), TRUTH_SECONDS, "mismatch told")
        made.play()
        recovered(made, before)
        assert made.reader() != child


def test_it_starts_without_anything_and_picks_everything_up_when_it_comes(node):
    with node(there=False) as made:
        page = made.until(down("dcgm", "library_missing"), RECOVERY_SECONDS, "missing told")
        assert page.reasons("kubelet") == {"socket_missing"}
        assert page.dcgm() == set()
        assert made.scraper.get("/health") == (200, "OK")
        assert made.scraper.get("/readyz")[0] == 200
        made.kubelet.start()
        made.until(lambda p: p.up("kubelet"), RECOVERY_SECONDS, "kubelet found")
        build(made.libraries, only="libdcgm.so.4")
        page = made.whole()
        assert any('pod="embedder' in line for line in page.dcgm())


def test_auto_never_simulates_and_takes_what_comes(node):
    with node("auto", there=False) as made:
        page = made.until(down("dcgm", "library_missing"), RECOVERY_SECONDS, "missing told")
        assert page.dcgm() == set()
        made.kubelet.start()
        made.scraper.source = "nvml"
        build(made.libraries, only="libnvidia")
        page = made.whole()
        assert page.up("simulated") is None
        assert [labels["source"] for labels, _ in page.series("gpugauge_build_info")] == ["nvml"]


def ended(made, pid):
    """Exit code and seconds after SIGTERM; nothing it started is left."""
    left = [*children(pid), *(grandchild for child in children(pid) for grandchild in children(child))]
    assert left
    made.scraper.stop()
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    code = made.process.wait(timeout=20)
    took = made.measured["ended"] = time.monotonic() - began
    end = time.monotonic() + 5
    while any(map(alive, left)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(alive, left))
    return code, took


@pytest.mark.parametrize("hangs", [False, True], ids=["well", "during a hang"])
def test_sigterm_ends_it_and_its_reader_soon_and_cleanly(node, hangs):
    with node() as made:
        if hangs:
            made.play(Call("*", hang=True))
            made.until(down("dcgm", "slow"), TRUTH_SECONDS, "down told")
        code, took = ended(made, made.process.pid)
        assert code == 0
        assert took < STOP_SECONDS


UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--")


def namespaces_are_allowed():
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not namespaces_are_allowed(), reason="this machine gives no process namespaces")
def test_sigterm_ends_it_as_the_first_process_of_a_container_even_during_a_hang(node):
    with node(prefix=UNSHARE) as made:
        (first,) = children(made.process.pid)
        assert namespace_pid(first) == 1
        made.play(Call("*", hang=True))
        made.until(down("dcgm", "slow"), TRUTH_SECONDS, "down told")
        code, took = ended(made, first)
        assert code == 0
        assert took < STOP_SECONDS


def namespace_pid(pid):
    """Its number as it sees itself."""
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        return int(next(line.split()[-1] for line in status if line.startswith("NSpid:")))


def test_sighup_takes_up_a_changed_counters_file_and_keeps_the_old_one_when_it_is_broken(node, tmp_path):
    counters = tmp_path / "counters.csv"
    row = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n"
    counters.write_text(row)
    with node("dcgm", "-f", str(counters)) as made:
        first = made.scraper.latest
        assert names(first) == {"DCGM_FI_DEV_GPU_TEMP"}
        counters.write_text(row + "DCGM_FI_DEV_SM_CLOCK, gauge, Clock.\n")
        made.process.send_signal(signal.SIGHUP)
        second = made.until(
            lambda p: names(p) == {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"},
            RECOVERY_SECONDS,
            "new field shown",
        )
        assert second.value("gpugauge_config_last_reload_successful") == 1
        assert digest(second) != digest(first)
        for broken in ("this is no counters file\n", None):
            counters.write_text(broken) if broken else counters.unlink()
            made.process.send_signal(signal.SIGHUP)
            page = made.until(
                lambda p: p.value("gpugauge_config_last_reload_successful") == 0, TRUTH_SECONDS, "broken file told"
            )
            assert digest(page) == digest(second)
            made.until(lambda p: p.dcgm() == second.dcgm(), RECOVERY_SECONDS, "old fields kept")
            counters.write_text(row)
            made.process.send_signal(signal.SIGHUP)
            made.until(lambda p: p.value("gpugauge_config_last_reload_successful") == 1, RECOVERY_SECONDS, "mended")
            counters.write_text(row + "DCGM_FI_DEV_SM_CLOCK, gauge, Clock.\n")
            made.process.send_signal(signal.SIGHUP)
            made.until(lambda p: p.dcgm() == second.dcgm(), RECOVERY_SECONDS, "changed again")


def digest(page):
    return [labels["sha256"] for labels, _ in page.series("gpugauge_config_info")]
