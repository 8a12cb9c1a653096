"""XIDs through NVML events: each is received once and with its time, whatever else happens."""

import threading
import time

import pytest

from exporter.node.nvml.events.xid_events import XidMemory
from exporter.node.simulation.document import CallFault, GpuLoss, XidEvent
from exporter.node.simulation.scenario import load
from exporter.source import SourceError
from tests.exporter.node.nvml.fixture import column, counted, samples, wait_for_xids, with_events
from tests.waiting import until

WAIT, REGISTER, CREATE = "nvmlEventSetWait_v2", "nvmlDeviceRegisterEvents", "nvmlEventSetCreate"
FIRST, SECOND, THIRD = (gpu.uuid for gpu in load("whole").document.devices[:3])


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "xid events"]


def test_a_repeated_code_is_received_each_time_and_only_once(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events("whole", XidEvent(FIRST, 10, 31), XidEvent(FIRST, 11, 31), XidEvent(SECOND, 11, 31))
    source = open_source(230)
    assert source.read().xids == ()
    table.tick(12)
    reports = wait_for_xids(source, 31, 31, 31)
    assert {(report.uuid, report.code) for report in reports} == {(FIRST, 31), (SECOND, 31)}
    assert source.read().xids == ()


def test_an_xid_has_the_time_at_which_it_was_received(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events("whole", XidEvent(FIRST, 10, 31))
    source = open_source(230)
    source.read()
    before = time.time()
    table.tick(12)
    (report,) = wait_for_xids(source, 31)
    assert before <= report.at <= time.time()


def test_a_storm_is_counted_completely_and_delays_no_collection(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events("whole", *(XidEvent(FIRST, 10 + n / 1e4, 31 + n % 2) for n in range(2000)))
    source = open_source(230, 150)
    source.read()
    table.tick(12)
    reports = wait_for_xids(source, *[31] * 1000, *[32] * 1000)
    assert len(reports) < 200, "those of one code and second are one report"


def test_the_xid_of_a_gpu_that_is_lost_with_it_is_reported(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events("whole", XidEvent(FIRST, 10, 79), GpuLoss(FIRST, 10))
    source = open_source(230, 150)
    source.read()
    table.tick(12)
    (report,) = wait_for_xids(source, 79)
    assert (report.uuid, source.read().down) == (FIRST, (FIRST,))


def test_an_event_set_that_a_lost_gpu_made_unusable_is_replaced_and_the_others_go_on(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events(
        "whole", CallFault(WAIT, at=10, for_=10, status=15), GpuLoss(FIRST, 10), XidEvent(SECOND, 30, 31)
    )
    source = open_source(230, 150)
    source.read()
    table.tick(12)
    until(lambda: source.read().down == (FIRST,))
    time.sleep(0.3)  # at least one wait has failed by now
    table.tick(25)
    until(lambda: None not in column(source.read(), 230))
    time.sleep(0.3)
    table.tick(31)
    (report,) = wait_for_xids(source, 31)
    assert report.uuid == SECOND


@pytest.mark.parametrize("function", [REGISTER, CREATE])
def test_where_events_are_not_supported_no_gpu_is_without_an_xid(scenario_table, open_source, function):
    table = scenario_table(with_events("whole", CallFault(function, for_=5, status=3)))
    source = open_source(230)
    readings = source.read()
    assert set(column(readings, 230)) == {None}
    assert counted(readings, 230) == {"not_supported": 8}
    table.tick(6)
    until(lambda: set(column(source.read(), 230)) == {0})


def test_a_gpu_that_could_not_be_registered_is_tried_again_in_each_collection(scenario_table, open_source):
    table = scenario_table(with_events("whole", CallFault(REGISTER, at=0, for_=5, status=3), XidEvent(THIRD, 8, 31)))
    source = open_source(230)
    source.read()
    table.tick(6)
    until(lambda: set(column(source.read(), 230)) == {0})
    table.tick(9)
    assert wait_for_xids(source, 31)[0].uuid == THIRD


def test_the_thread_ends_with_the_source_and_begins_again_with_the_next_read(scenario_table, open_source):
    table = scenario_table("whole")
    table.scenario = with_events("whole", XidEvent(FIRST, 10, 31), XidEvent(FIRST, 20, 31))
    source = open_source(230)
    assert threads() == []
    source.read()
    table.tick(12)
    wait_for_xids(source, 31)
    assert len(threads()) == 8
    source.close()
    assert threads() == []
    source.read()
    table.tick(21)
    wait_for_xids(source, 31)
    assert len(threads()) == 8


def test_without_the_field_there_is_no_thread(scenario_table, open_source):
    scenario_table("whole")
    open_source(150).read()
    assert threads() == []


def test_what_was_received_is_kept_while_reads_fail(scenario_table, open_source, clock):
    table = scenario_table("whole")
    table.scenario = with_events("whole", XidEvent(FIRST, 10, 31), CallFault("nvmlDeviceGetCount_v2", 11, 5, status=9))
    source = open_source(230)
    source.read()
    table.tick(10.5)
    until(lambda: {key[0]: value for key, value in samples(source.read()).items() if value} == {FIRST: 31})
    table.tick(12)
    with pytest.raises(SourceError, match="driver"):
        source.read()
    table.tick(20)
    clock.now += 60
    assert column(source.read(), 230)[0] == 31


def test_times_of_xids_grow_whatever_the_clock_does():
    events = XidMemory(lambda: 0.0, lambda: 1000.0)
    for code in (31, 31, 63):
        events.record("GPU-a", code)
    reports = events.take()
    assert [(report.code, report.count) for report in reports] == [(31, 2), (63, 1)]
    assert reports[0].at < reports[1].at
    assert events.take() == ()


def test_0_is_no_statement_about_what_came_before_the_events_were_registered(scenario_table, open_source):
    table = scenario_table(with_events("whole", XidEvent(FIRST, 10, 79)))
    table.tick(12)
    source = open_source(230)
    assert set(column(source.read(), 230)) == {0}
    assert source.read().xids == ()
