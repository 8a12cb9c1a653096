"""The collection loop publishes an exposition after every collection, whatever happened in it."""

import threading

import pytest

from exporter.collection_loop import FIRST_COLLECTIONS, FOLLOWS_A_CRASH, CollectionLoop, CollectionPace
from exporter.exposition.exporter_metrics import ExporterMetrics
from exporter.exposition.exposition import Form
from exporter.metric import Family, Kind, LabelError, metric
from exporter.node.reader.reasons import ReaderReason
from exporter.program import ProgramEndpoints
from exporter.snapshot import CollectionCycle, Snapshot, SourceHealth, SourceProblem
from exporter.source import SourceError

UP = metric("a", Kind.GAUGE, "A.")


def snapshot(*health, **more):
    return Snapshot(12.5, (Family(UP, [UP.sample(1)]),), health, **more)


def loop_over(collect, clock=lambda: 0.0):
    return CollectionLoop(collect, ExporterMetrics({"node": "n1"}), 30.0, clock)


def test_before_the_first_collection_the_exporter_metrics_are_exposed():
    text = loop_over(snapshot).exposition.text.decode()
    assert 'gpugauge_build_info{contract="1",node="n1",' in text
    assert "\na 1" not in text
    assert "gpugauge_last_collection_timestamp_seconds{" not in text


def test_a_collection_exposes_data_and_health():
    loop = loop_over(lambda: snapshot(SourceHealth("kubelet", up=False, seconds=0.5, reason="timeout", message="m")))
    loop.collect()
    text = loop.exposition.text.decode()
    assert "\na 1\n" in text
    assert 'gpugauge_source_up{node="n1",source="kubelet"} 0.0' in text
    assert 'gpugauge_source_problem{node="n1",reason="timeout",source="kubelet"} 1.0' in text
    assert 'gpugauge_source_errors_total{node="n1",reason="timeout",source="kubelet"} 1.0' in text
    assert 'gpugauge_last_collection_timestamp_seconds{node="n1"} 12.5' in text


def test_a_collection_makes_the_forms_that_were_asked_for_and_no_other():
    loop = loop_over(snapshot)
    loop.collect()
    assert loop.exposition.forms == set()
    assert loop.exposition.text_gzip
    loop.collect()
    assert loop.exposition.forms == {Form.TEXT_GZIP}


def test_openmetrics_shows_its_own_collection_also_when_it_is_asked_for_after_the_next_one():
    answers = [snapshot(rejected={("F", "blank"): 2}), snapshot(rejected={("F", "blank"): 3})]
    loop = loop_over(lambda: answers.pop(0))
    loop.collect()
    first = loop.exposition
    loop.collect()
    rejected = 'gpugauge_rejected_values_total{field="F",node="n1",reason="blank"}'
    assert f"{rejected} 2.0" in first.openmetrics.decode()
    assert f"{rejected} 5.0" in loop.exposition.openmetrics.decode()


def test_label_values_without_a_name_are_an_error_and_not_dropped():
    metrics = ExporterMetrics({"node": "n1"})
    metrics.observe(snapshot(rejected={("DCGM_FI_DEV_GPU_UTIL",): 1}))
    with pytest.raises(LabelError, match="gpugauge_rejected_values: 1 label values for 2 names"):
        list(metrics.collect())


def test_rejected_values_add_up_and_problems_show_only_while_they_last():
    answers = [
        snapshot(
            rejected={("F", "blank"): 2}, problems=(SourceProblem("dcgm", "profiling_unavailable", "no counters"),)
        ),
        snapshot(rejected={("F", "blank"): 3}, build={"source": "dcgm"}),
    ]
    loop = loop_over(lambda: answers.pop(0))
    loop.collect()
    assert 'reason="profiling_unavailable",source="dcgm"} 1.0' in loop.exposition.text.decode()
    loop.collect()
    text = loop.exposition.text.decode()
    assert "profiling_unavailable" not in text
    assert 'gpugauge_rejected_values_total{field="F",node="n1",reason="blank"} 5.0' in text
    assert 'source="dcgm"' in text


def test_a_defect_costs_the_data_of_its_collection_and_is_counted():
    answers = [snapshot(), None]
    loop = loop_over(lambda: answers.pop(0) or 1 / 0)
    loop.collect()
    loop.collect()
    text = loop.exposition.text.decode()
    assert "\na 1\n" not in text
    assert "gpugauge_source_up{" not in text
    assert 'gpugauge_collection_failures_total{node="n1"} 1.0' in text


def test_the_first_collections_are_quick_and_one_without_devices_is_made_again_soon():
    pace = CollectionPace(30.0)
    assert [pace.wait(n, retry_soon=False) for n in (1, 2, 3, 4)] == [1.0, 1.0, 30.0, 30.0]
    assert pace.wait(9, retry_soon=True) == 2.0
    assert CollectionPace(0.5).wait(1, retry_soon=True) == 0.5


def test_a_thread_that_is_stuck_is_reported_and_stopping_it_does_not_wait():
    now = [0.0]
    stuck, release = threading.Event(), threading.Event()

    def collect():
        stuck.set()
        release.wait(300)
        return snapshot()

    loop = loop_over(collect, lambda: now[0])
    loop.start()
    assert stuck.wait(60)
    assert loop.stalled() is None
    now[0] = 500.0
    assert loop.stalled() == "no collection has ended for 500 s"
    loop.stop(timeout=0.05)
    assert loop._thread.is_alive(), "stop() waited for the collection that hangs"
    release.set()
    loop._thread.join(60)
    assert not loop._thread.is_alive()


@pytest.mark.parametrize(("interval", "limit"), [(30.0, 90.0), (300.0, 900.0), (0.1, 30.0)])
def test_a_loop_is_late_before_its_first_collection_and_after_three_intervals_without_one(interval, limit):
    now = [100.0]
    loop = CollectionLoop(snapshot, ExporterMetrics({}), interval, lambda: now[0])
    endpoints = ProgramEndpoints(loop, lambda: None)
    assert endpoints.ready() == "the first collection has not ended yet"
    loop.collect()
    now[0] += limit
    assert endpoints.ready() is None
    now[0] += 1
    assert endpoints.ready() == f"no collection has ended for {limit + 1:.0f} s"
    assert endpoints.live() is None
    loop.collect()
    assert endpoints.ready() is None


def test_missing_devices_and_failed_sources_do_not_make_a_program_unready():
    down = SourceHealth("dcgm", up=False, seconds=0.0, reason="timeout", message="m")
    loop = loop_over(lambda: snapshot(down, retry_soon=True))
    loop.collect()
    assert ProgramEndpoints(loop, lambda: None).ready() is None


def test_a_failed_source_costs_only_its_own_data():
    class Broken:
        name = "kubelet"

        def read(self):
            raise SourceError("timeout", "no answer within 5 s")

        def close(self): ...

    cycle = CollectionCycle()
    assert cycle.read(Broken(), otherwise=()) == ()
    (health,) = cycle.health
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
        CollectionCycle().read(Defect(), otherwise=())


def test_a_source_that_stays_down_is_logged_once_and_again_when_it_recovers(caplog):
    down = SourceHealth("kubelet", up=False, seconds=0, reason="timeout", message="no answer within 5 s")
    up = SourceHealth("kubelet", up=True, seconds=0)
    answers = [snapshot(down), snapshot(down), snapshot(up), snapshot(up)]
    loop = loop_over(lambda: answers.pop(0))
    with caplog.at_level("INFO"):
        for _ in range(4):
            loop.collect()
    assert [record.message for record in caplog.records] == ["kubelet: no answer within 5 s", "kubelet: recovered"]


def logged(caplog, *snapshots):
    answers = list(snapshots)
    loop = loop_over(lambda: answers.pop(0))
    with caplog.at_level("INFO"):
        for _ in snapshots:
            loop.collect()
    return [record.message for record in caplog.records]


def down(reason):
    return SourceHealth("dcgm", up=False, seconds=0, reason=reason, message=f"it is {reason}")


UP_AGAIN = SourceHealth("dcgm", up=True, seconds=0)
LASTING = SourceProblem("dcgm", "profiling_unavailable", "no counters")
LATE = SourceProblem("dcgm", "slow", "the reply came late")


def test_a_collection_without_readings_says_nothing_about_a_lasting_problem(caplog):
    fine = snapshot(UP_AGAIN, problems=(LASTING,))
    outages = [snapshot(down(reason)) for reason in ("slow", "starting", "restarting")]
    between = [each for outage in outages for each in (outage, fine)]
    assert logged(caplog, fine, *between, snapshot(UP_AGAIN)) == [
        "dcgm profiling_unavailable: no counters",
        "dcgm: it is slow",
        "dcgm: recovered",
        "dcgm: it is starting",
        "dcgm: recovered",
        "dcgm profiling_unavailable: recovered",
    ]


def test_reasons_that_alternate_are_logged_once_each_and_so_is_the_recovery(caplog):
    outage = [snapshot(down("slow")), snapshot(down("connection_lost"))] * 3
    assert logged(caplog, *outage, snapshot(UP_AGAIN), snapshot(UP_AGAIN)) == [
        "dcgm: it is slow",
        "dcgm: it is connection_lost",
        "dcgm: recovered",
    ]


@pytest.mark.parametrize("first", ["no readings", "late readings"])
def test_a_slow_source_is_logged_once_whether_its_readings_are_late_or_missing(caplog, first):
    missing, late = snapshot(down("slow")), snapshot(UP_AGAIN, problems=(LATE,))
    order = [missing, late] if first == "no readings" else [late, missing]
    begins, ends = logged(caplog, *order * 3, snapshot(UP_AGAIN))
    assert begins == {"no readings": "dcgm: it is slow", "late readings": "dcgm slow: the reply came late"}[first]
    assert ends.endswith(": recovered")


def test_a_source_that_another_one_replaced_is_not_said_to_have_recovered(caplog):
    assert logged(caplog, snapshot(down("connection_lost")), snapshot(SourceHealth("nvml", up=True, seconds=0))) == [
        "dcgm: it is connection_lost"
    ]


def test_versions_that_were_read_stay_while_a_source_is_down():
    answers = [snapshot(build={"source": "dcgm", "dcgm_version": "4.2.3"}), snapshot(build={"dcgm_version": ""})]
    loop = loop_over(lambda: answers.pop(0))
    loop.collect()
    loop.collect()
    assert 'dcgm_version="4.2.3"' in loop.exposition.text.decode()


def test_the_reason_that_is_not_logged_is_that_of_a_reader_process_between_a_crash_and_the_next_start():
    assert ReaderReason.RESTARTING == FOLLOWS_A_CRASH


def test_a_collection_that_is_asked_for_soon_does_not_wait_for_the_interval():
    collected = threading.Semaphore(0)
    loop = loop_over(lambda: collected.release() or snapshot())
    loop.start()
    try:
        for _ in range(FIRST_COLLECTIONS):
            assert collected.acquire(timeout=60)
        for _ in range(5):  # the interval is 30 s
            loop.collect_soon()
            assert collected.acquire(timeout=20)
    finally:
        loop.stop(60)
    assert not loop._thread.is_alive()
