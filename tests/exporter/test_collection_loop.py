"""The sampler publishes a page after every pass, whatever the pass did."""

import threading

import pytest

from exporter.collection_loop import Pace, Sampler
from exporter.exposition.exporter_metrics import SelfMetrics
from exporter.metric import NO_LABELS, Family, Kind, Metric
from exporter.snapshot import Pass, Snapshot, SourceHealth, SourceProblem
from exporter.source import SourceError

UP = Metric("a", Kind.GAUGE, "A.")


def snapshot(*health, **more):
    return Snapshot(12.5, (Family(UP, [(NO_LABELS, 1)]),), health, **more)


def sampler(take, clock=lambda: 0.0):
    return Sampler(take, SelfMetrics({"hostname": "n1"}), 30.0, clock)


def test_before_the_first_pass_there_is_a_page_about_the_exporter():
    page = sampler(snapshot).page.text.decode()
    assert 'gpugauge_build_info{contract="1",hostname="n1",' in page
    assert "\na 1" not in page
    assert "gpugauge_snapshot_timestamp_seconds{" not in page


def test_a_pass_replaces_data_and_health():
    own = sampler(lambda: snapshot(SourceHealth("kubelet", up=False, seconds=0.5, reason="timeout", message="m")))
    own.sample()
    page = own.page.text.decode()
    assert "\na 1\n" in page
    assert 'gpugauge_source_up{hostname="n1",source="kubelet"} 0.0' in page
    assert 'gpugauge_source_problem{hostname="n1",reason="timeout",source="kubelet"} 1.0' in page
    assert 'gpugauge_source_errors_total{hostname="n1",reason="timeout",source="kubelet"} 1.0' in page
    assert 'gpugauge_snapshot_timestamp_seconds{hostname="n1"} 12.5' in page


def test_rejected_values_add_up_and_problems_show_only_while_they_last():
    answers = [
        snapshot(
            rejected={("F", "blank"): 2}, problems=(SourceProblem("dcgm", "profiling_unavailable", "no counters"),)
        ),
        snapshot(rejected={("F", "blank"): 3}, build={"source": "dcgm"}),
    ]
    own = sampler(lambda: answers.pop(0))
    own.sample()
    assert 'reason="profiling_unavailable",source="dcgm"} 1.0' in own.page.text.decode()
    own.sample()
    page = own.page.text.decode()
    assert "profiling_unavailable" not in page
    assert 'gpugauge_rejected_values_total{field="F",hostname="n1",reason="blank"} 5.0' in page
    assert 'source="dcgm"' in page


def test_a_defect_costs_the_data_of_its_pass_and_is_counted():
    answers = [snapshot(), None]
    own = sampler(lambda: answers.pop(0) or 1 / 0)
    own.sample()
    own.sample()
    page = own.page.text.decode()
    assert "\na 1\n" not in page
    assert "gpugauge_source_up{" not in page
    assert 'gpugauge_failed_passes_total{hostname="n1"} 1.0' in page


def test_the_first_passes_are_quick_and_a_source_that_is_down_is_asked_again_soon():
    pace = Pace(30.0)
    assert [pace.wait(n, healthy=True) for n in (1, 2, 3, 4)] == [1.0, 1.0, 30.0, 30.0]
    assert pace.wait(9, healthy=False) == 2.0
    assert Pace(0.5).wait(1, healthy=False) == 0.5


def test_a_thread_that_is_stuck_is_reported_and_stopping_it_does_not_wait():
    now = [0.0]
    stuck, release = threading.Event(), threading.Event()

    def take():
        stuck.set()
        release.wait(30)
        return snapshot()

    own = sampler(take, lambda: now[0])
    own.start()
    assert stuck.wait(5)
    assert own.stalled() is None
    now[0] = 500.0
    assert own.stalled() == "no pass has ended for 500 s"
    own.stop(timeout=0.05)
    release.set()


def test_a_failed_source_costs_only_its_own_data():
    class Broken:
        name = "kubelet"

        def read(self):
            raise SourceError("timeout", "no answer within 5 s")

        def close(self): ...

    this = Pass()
    assert this.read(Broken(), otherwise=()) == ()
    (health,) = this.health
    assert (health.source, health.up, health.reason, health.message) == (
        "kubelet",
        False,
        "timeout",
        "no answer within 5 s",
    )


def test_a_defect_in_a_source_is_not_mistaken_for_a_failed_read():
    class Defect:
        name = "kubelet"

        def read(self):
            raise ZeroDivisionError

        def close(self): ...

    with pytest.raises(ZeroDivisionError):
        Pass().read(Defect(), otherwise=())


def test_a_source_that_stays_down_is_logged_once_and_again_when_it_is_back(caplog):
    down = SourceHealth("kubelet", up=False, seconds=0, reason="timeout", message="no answer within 5 s")
    up = SourceHealth("kubelet", up=True, seconds=0)
    answers = [snapshot(down), snapshot(down), snapshot(up), snapshot(up)]
    own = sampler(lambda: answers.pop(0))
    with caplog.at_level("INFO"):
        for _ in range(4):
            own.sample()
    assert [record.message for record in caplog.records] == ["kubelet: no answer within 5 s", "kubelet: well again"]


def test_versions_that_were_learned_stay_while_a_source_is_down():
    answers = [snapshot(build={"source": "dcgm", "dcgm_version": "4.2.3"}), snapshot(build={"dcgm_version": ""})]
    own = sampler(lambda: answers.pop(0))
    own.sample()
    own.sample()
    assert 'dcgm_version="4.2.3"' in own.page.text.decode()
